"""A disk of temporary files that is full is named, with the machine, and is no reason for another try."""

import errno
import os
import platform
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

import crosslign
from crosslign.errors import ResourceError
from crosslign.files.atomic import atomic_path
from crosslign.files.temporary import NoTemporaryRoomError, temporary_folder


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A TMPDIR of one megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(place)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.decode().strip()}")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder):
    with open(f"{folder}/rows", "wb") as file:
        file.write(b"x" * (2 << 20))


def test_a_full_tmpdir_is_told_with_its_machine_and_not_as_the_results_disk(small, tmp_path):
    with pytest.raises(NoTemporaryRoomError) as caught, atomic_path(tmp_path / "result"), temporary_folder("crosslign-test-") as folder:
        fill(folder)
    assert f"{small} on {platform.node()}" in str(caught.value)
    assert "TMPDIR" in str(caught.value)
    assert not list(small.iterdir())
    assert not (tmp_path / "result").exists()


def test_everything_that_grows_in_tmpdir_says_so_where_that_is_full():
    """A full TMPDIR would else be told as a full disk of the results."""
    small = {"views/translators/provided.py", "cli/commands/rehearse.py", "corpora/stand_ins/bible_wheel.py", "corpora/soundness.py"}
    small |= {"corpora/sources/opus.py", "files/temporary.py"}
    source = Path(crosslign.__file__).parent
    made = re.compile(r"TemporaryDirectory\((?!dir=)")
    assert {path.relative_to(source).as_posix() for path in source.rglob("*.py") if made.search(path.read_text(encoding="utf-8"))} == small


def test_a_full_results_disk_is_still_told_as_such(tmp_path):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with (
        pytest.raises(ResourceError, match=r"result: .*disk.*crosslign plan") as caught,
        atomic_path(tmp_path / "result"),
        temporary_folder("x-"),
    ):
        raise full
    assert not isinstance(caught.value, NoTemporaryRoomError)
