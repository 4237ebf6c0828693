"""Copies by hard links: the same bytes once on disk, real copies where links cannot be."""

import errno
import os

import pytest

from crosslign.files.linked import copy_linked
from crosslign.files.walk import disk_below


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "one" / "main"
    inner.mkdir(parents=True)
    (inner / "weights").write_bytes(b"123")
    (tmp_path / "one" / "parts").write_bytes(b"45")
    return tmp_path / "one"


def test_a_copy_shares_its_files_and_outlives_the_first(folder, tmp_path):
    copy_linked(folder, tmp_path / "two")
    assert (tmp_path / "two" / "main" / "weights").samefile(folder / "main" / "weights")
    (folder / "main" / "weights").unlink()
    assert (tmp_path / "two" / "main" / "weights").read_bytes() == b"123"
    assert (tmp_path / "two" / "parts").read_bytes() == b"45"


def test_files_of_several_names_take_disk_once(folder, tmp_path):
    copy_linked(folder, tmp_path / "two")
    (tmp_path / "two" / "own").write_bytes(b"6789")
    assert disk_below(tmp_path) == 3 + 2 + 4
    assert disk_below(tmp_path / "none") == 0


def test_without_links_it_copies(folder, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    copy_linked(folder, tmp_path / "two")
    assert (tmp_path / "two" / "main" / "weights").read_bytes() == b"123"
    assert not (tmp_path / "two" / "main" / "weights").samefile(folder / "main" / "weights")
