"""Who runs a workflow, and from where."""

from __future__ import annotations

import getpass
import os
import pwd

import pytest

from crosslign.files.home import name_user

NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")


def _unknown(number):
    raise KeyError(f"getpwuid(): uid not found: {number}")


@pytest.fixture
def nameless(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "")  # what is set in its place is undone
    monkeypatch.setattr(pwd, "getpwuid", _unknown)
    return monkeypatch


def test_a_user_without_a_name_is_called_by_the_number(nameless):
    with pytest.raises((KeyError, OSError)):
        getpass.getuser()
    name_user()
    assert getpass.getuser() == str(os.getuid())


def test_a_name_stays(nameless):
    nameless.setenv("LOGNAME", "ada")
    name_user()
    assert getpass.getuser() == "ada"
    assert os.environ["USER"] == ""
