"""Copies by hard links: the same bytes once on disk, real copies where links cannot be."""

import errno
import os

import pytest

from crosslign.files.linked import copy_linked


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


def test_without_links_it_copies(folder, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    copy_linked(folder, tmp_path / "two")
    assert (tmp_path / "two" / "main" / "weights").read_bytes() == b"123"
    assert not (tmp_path / "two" / "main" / "weights").samefile(folder / "main" / "weights")
