"""A results folder on a disk that is full: an error that says so, and a run that goes on when there is room."""

import shutil
import subprocess

import pytest

pytestmark = pytest.mark.long
RUN = "MB-nomom-s42"
ROOM = 64 << 20


@pytest.fixture
def small_disk(first):
    """Put all results on a disk of their own that has next to no room left; gives the function that makes room."""
    first.remove(RUN)
    held = first.folder / "held"
    shutil.move(first.folder / "results", held)
    used = sum(max(4096, -(-path.stat().st_size // 4096) * 4096) for path in held.rglob("*")) + ROOM
    place = first.folder / "results"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={used}", "tmpfs", str(place)], capture_output=True, check=False)
    if mounted.returncode:
        place.rmdir()
        shutil.move(held, place)
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    shutil.copytree(held, place, dirs_exist_ok=True)
    filler = place / "filler"
    try:
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4096"], capture_output=True, check=False)  # until nothing fits
        yield filler.unlink
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        place.rmdir()
        shutil.move(held, place)


def test_it_is_said_clearly_and_goes_on_when_there_is_room(first, small_disk):
    target = f"results/quick/systems/{RUN}"
    code, said = first.run("--retries", "0", targets=[target], check=False)
    assert code != 0
    assert "disk" in said
    small_disk()
    first.run(targets=[target])
    assert first.system(RUN).is_dir()
