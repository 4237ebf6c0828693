import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crosslign.errors import InputError, ResourceError
from crosslign.files import atomic_folder, atomic_path, write_text
from crosslign.files.atomic import disk_problem


def fail(path):
    """Write half a file and raise."""

    def write():
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()


def refuse(path, *_, **__):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def test_a_block_that_raises_leaves_nothing(tmp_path):
    fail(tmp_path / "out.txt")
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_when_its_replacement_fails(tmp_path):
    write_text(tmp_path / "out.txt", "old")
    fail(tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "old"


def test_a_folder_replaces_the_old_one_whole(tmp_path):
    for name in ("first", "second"):
        with atomic_folder(tmp_path / "run") as folder:
            (folder / name).write_text(name)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["second"]


@pytest.mark.parametrize("there", ["a folder that may not be changed", "a link to a folder", "a link to nothing", "a file"])
def test_a_folder_takes_the_place_of_whatever_lies_there_and_what_a_link_leads_to_stays(tmp_path, monkeypatch, there):
    place, old, elsewhere = tmp_path / "in" / "run", tmp_path / "old", tmp_path / "elsewhere"
    place.parent.mkdir()
    (old / "inner").mkdir(parents=True)
    if there == "a file":
        place.write_text("old")
    elif there.startswith("a link"):
        place.symlink_to(elsewhere if there.endswith("nothing") else old)
    else:
        (place / "inner").mkdir(parents=True)
        monkeypatch.setattr(os, "rmdir", refuse)  # root may change all
    with atomic_folder(place) as folder:
        (folder / "weights").write_text("new")
    assert [path.name for path in place.iterdir()] == ["weights"]
    assert not place.is_symlink()
    assert (old / "inner").is_dir()


def test_a_folder_that_may_not_be_moved_stays_whole(tmp_path, monkeypatch):
    place = tmp_path / "run"
    place.mkdir()
    (place / "weights").write_text("old")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(ResourceError, match=r"/run: .*written"), atomic_folder(place) as folder:
        (folder / "weights").write_text("new")
    assert (place / "weights").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_killed_writer_leaves_no_final_name(tmp_path):
    code = (
        "import os, signal\nfrom pathlib import Path\nfrom crosslign.files import atomic_path\n"
        f"with atomic_path(Path({str(tmp_path / 'out.bin')!r})) as path:\n"
        "    path.write_bytes(b'x' * 1000)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "out.bin").exists()


@pytest.mark.parametrize("writer", [atomic_path, atomic_folder])
@pytest.mark.parametrize("place", ["/proc/crosslign/out", "/dev/null/out", "{tmp}/file/out", "{tmp}/" + "x" * 300 + "/out"])
def test_a_place_that_cannot_be_written_to_is_an_error_for_people(tmp_path, writer, place):
    (tmp_path / "file").write_text("x")
    path = Path(place.format(tmp=tmp_path))
    with pytest.raises(ResourceError, match=r"out: .*written; "), writer(path):
        pytest.fail("there is nowhere to write")
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "report",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
    ids=["disk", "quota", "words"],
)
def test_a_full_disk_is_named_however_it_was_reported(tmp_path, report):
    error = ValueError("could not write")
    error.__cause__ = report
    assert disk_problem(error, tmp_path / "file").exit_code == 4
    assert disk_problem(ValueError("could not write"), tmp_path / "file") is None


def test_a_source_without_the_right_to_read_it_is_not_taken_for_the_target(tmp_path, monkeypatch):
    (tmp_path / "mine.de").write_text("x")
    monkeypatch.setattr("crosslign.files.atomic.os.access", lambda path, mode: mode != os.R_OK)
    with pytest.raises(ResourceError, match=r"mine\.de: .*read; Permission denied"), atomic_path(tmp_path / "copy"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "mine.de"))


@pytest.mark.parametrize("write", [atomic_path, atomic_folder])
def test_nothing_but_a_file_or_a_folder_is_replaced(tmp_path, write):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for place in (pipe, link):
        with pytest.raises(InputError, match=rf"{place}: .*pipe"), write(place):
            pytest.fail("it was written")
    assert pipe.is_fifo()
    assert link.is_symlink()
