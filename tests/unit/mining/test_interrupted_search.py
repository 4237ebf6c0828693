"""A search that is killed goes on; a search in shares finds what one search finds."""

from __future__ import annotations

import signal
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import torch
from forks import Forks
from test_knn import clusters, equal

from crosslign.errors import ResourceError
from crosslign.mining import knn, search
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import State, read_neighbours, write_neighbours
from crosslign.mining.resume import digest

SHAPE = {"tile": (64, 64), "dtype": torch.bfloat16}


def sides() -> tuple[np.ndarray, np.ndarray]:
    return clusters(500, 24, 1, 0.5), clusters(420, 24, 2, 0.5)


def stop_after(monkeypatch: pytest.MonkeyPatch, strips: int) -> list[slice]:
    """Make the search die once it has done so many tile rows; return the list of those that it began."""
    real, begun = search.Search._strip, []

    def strip(self: object, at: slice, *rest: object) -> object:
        if len(begun) == strips:
            raise KeyboardInterrupt
        begun.append(at)
        return real(self, at, *rest)

    monkeypatch.setattr(search.Search, "_strip", strip)
    return begun


def interrupt(monkeypatch: pytest.MonkeyPatch, x: np.ndarray, y: np.ndarray, folder: Path) -> None:
    """Search until the fourth tile row begins; leave the state of the three before it."""
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            neighbours(x, y, 5, state=State(folder, 0), **SHAPE)


def test_goes_on_behind_the_last_tile_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = sides()
    expected = neighbours(x, y, 5, **SHAPE)
    interrupt(monkeypatch, x, y, tmp_path)
    begun = stop_after(monkeypatch, 100)
    assert equal(neighbours(x, y, 5, state=State(tmp_path, 0), **SHAPE), expected)
    assert begun[0].start == 3 * 64
    assert len(begun) == 5
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("tile", [(32, 128), (256, 16), (48, 64)])
def test_goes_on_in_tiles_of_another_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tile: tuple[int, int]) -> None:
    x, y = sides()
    expected = neighbours(x, y, 5, **SHAPE)
    interrupt(monkeypatch, x, y, tmp_path)
    begun = stop_after(monkeypatch, 100)
    assert equal(neighbours(x, y, 5, state=State(tmp_path, 0), tile=tile, dtype=torch.bfloat16), expected)
    assert (begun[0].start, begun[-1].stop) == (3 * 64, 500)


def test_a_search_that_ends_leaves_no_state_of_another_type_of_products_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that goes on may have no bfloat16; what the first one left would stay for ever."""
    x, y = sides()
    interrupt(monkeypatch, x, y, tmp_path)
    assert list(tmp_path.iterdir())
    neighbours(x, y, 5, state=State(tmp_path, 0), tile=(64, 64), dtype=torch.float32)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", ["vector", "rows", "k", "damage"])
def test_the_state_of_another_search_is_not_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    x, y = sides()
    interrupt(monkeypatch, x, y, tmp_path)
    k, rows = 5, None
    if change == "vector":
        y = y.copy()
        y[7] = -y[7]
    elif change == "rows":
        rows = np.arange(len(y))[::-1].copy()
    elif change == "k":
        k = 6
    else:
        (file,) = tmp_path.iterdir()
        file.write_bytes(file.read_bytes()[:100])
    expected = neighbours(x, y, k, target_rows=rows, **SHAPE)
    assert equal(neighbours(x, y, k, target_rows=rows, state=State(tmp_path, 0), **SHAPE), expected)


def test_a_broken_bound_leaves_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = sides()
    expected = neighbours(x, y, 5, **SHAPE)
    product, tiles_made = search._product, [0]

    def wrong_from_the_fortieth_tile_on(left: torch.Tensor, right: torch.Tensor, buffer: torch.Tensor) -> torch.Tensor:
        tile = product(left, right, buffer)
        tiles_made[0] += 1
        if tile.dtype == torch.bfloat16 and tiles_made[0] >= 40:
            tile += 0.3
        return tile

    monkeypatch.setattr(search, "_product", wrong_from_the_fortieth_tile_on)
    seen = []
    real = search.Search._taken_over
    monkeypatch.setattr(search.Search, "_taken_over", lambda self, resume: seen.append(sorted(tmp_path.iterdir())) or real(self, resume))
    assert equal(neighbours(x, y, 5, state=State(tmp_path, 0), **SHAPE), expected)
    assert seen == [[], []]


PROGRAM = """
import os, signal, sys
from pathlib import Path
import torch
from crosslign.mining import search
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import State
from crosslign.mining.lists import write_neighbours
folder, killed_at = Path(sys.argv[1]), int(sys.argv[2])
real = search.Search._strip
def strip(self, at, *rest):
    print(at.start, flush=True)
    if at.start == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, at, *rest)
search.Search._strip = strip
torch.set_num_threads(1)
near = neighbours(folder / "x.npy", folder / "y.npy", 5, tile=(64, 64), state=State(folder / "state", 0))
write_neighbours(folder / "out.safetensors", near)
"""


def test_a_killed_process_goes_on_to_the_same_bytes(forks: Forks, tmp_path: Path) -> None:
    for name, side in zip("xy", sides(), strict=True):
        np.save(tmp_path / f"{name}.npy", side.astype(np.float16))
    killed = forks.run(PROGRAM, tmp_path, 192)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "out.safetensors").exists()
    again = forks.run(PROGRAM, tmp_path, -1)
    assert again.returncode == 0, again.stderr
    assert again.stdout.split()[0] == "192"
    write_neighbours(tmp_path / "whole.safetensors", neighbours(tmp_path / "x.npy", tmp_path / "y.npy", 5, tile=(64, 64)))
    assert (tmp_path / "out.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert read_neighbours(tmp_path / "out.safetensors").forward_indices.shape == (500, 5)


@pytest.mark.parametrize("devices", [2, 3, 8, 20])
def test_shares_find_what_one_search_finds(devices: int) -> None:
    x, y = sides()
    assert equal(neighbours(x, y, 5, device=["cpu"] * devices, **SHAPE), neighbours(x, y, 5, **SHAPE))


def test_a_share_may_have_fewer_rows_than_k() -> None:
    x, y = sides()
    found = neighbours(x[:33], y[:30], 20, device=["cpu", "cpu", "cpu"], tile=(16, 64))
    assert equal(found, neighbours(x[:33], y[:30], 20))


def test_shares_go_on_each_from_its_own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = sides()
    expected = neighbours(x, y, 5, **SHAPE)
    two = ["cpu", "cpu"]
    with monkeypatch.context() as patch:
        stop_after(patch, 5)
        with pytest.raises(KeyboardInterrupt):
            neighbours(x, y, 5, device=two, state=State(tmp_path, 0), **SHAPE)
    assert len(list(tmp_path.iterdir())) == 2
    begun = stop_after(monkeypatch, 100)
    assert equal(neighbours(x, y, 5, device=two, state=State(tmp_path, 0), **SHAPE), expected)
    assert len(begun) == 8 - 5


@pytest.mark.parametrize(("rows", "devices", "height"), [(500, 3, 64), (1, 4, 64), (64, 2, 64), (129, 2, 64), (1000, 7, 16)])
def test_shares_are_whole_tile_rows_that_cover_all(rows: int, devices: int, height: int) -> None:
    shares = knn._shares(rows, devices, height)
    assert [row for share in shares for row in range(share.start, share.stop)] == list(range(rows))
    assert all(share.start % height == 0 and share.stop > share.start for share in shares)
    sizes = [-(-(share.stop - share.start) // height) for share in shares]
    assert len(shares) <= devices
    assert max(sizes) - min(sizes) <= 1


def test_a_digest_tells_matrices_and_choices_apart() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    other = x.copy()
    other[3, 2] += 1
    rows = np.array([0, 1])
    found = [
        digest(x, None),
        digest(other, None),
        digest(x.reshape(3, 4), None),
        digest(x.astype(np.float16), None),
        digest(x, rows),
        digest(x, rows[::-1]),
    ]
    assert len(set(found)) == len(found)
    assert digest(x.copy(), rows.copy()) == digest(x, rows)


FAILURE = RuntimeError("CUDA error: unspecified launch failure\nMore.")
SAID = "^cpu, rows 256 to 499 of sources: a search failed; RuntimeError: CUDA error: unspecified launch failure"


FAULT = RuntimeError("a fault of the program's")
CASES = [(FAILURE, ResourceError, SAID), (FAULT, RuntimeError, "^a fault"), (KeyboardInterrupt(), KeyboardInterrupt, None)]


@pytest.mark.parametrize(("error", "raised", "said"), CASES)
def test_where_one_share_fails_the_others_keep_what_they_have_and_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, raised: type[BaseException], said: str | None
) -> None:
    x, y = sides()
    expected, two, state = neighbours(x, y, 5, **SHAPE), ["cpu", "cpu"], State(tmp_path, 3600)
    real, begun, other_began, end = search.Search._strip, [], Event(), Event()

    def strip(self: search.Search, at: slice, *rest: object) -> None:
        begun.append(at.start)
        if at.start >= 256:  # rows of the second share
            assert other_began.wait(20)
            raise error
        other_began.set()
        assert end.wait(20), "nobody told this share to end"
        real(self, at, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(search.Search, "_strip", strip)
        patch.setattr(knn, "Event", lambda: end)
        with pytest.raises(raised, match=said):
            neighbours(x, y, 5, device=two, state=state, **SHAPE)
    assert sorted(begun) == [0, 256]
    left = stop_after(monkeypatch, 100)
    assert equal(neighbours(x, y, 5, device=two, state=state, **SHAPE), expected)
    assert sorted(at.start for at in left) == [64, 128, 192, 256, 320, 384, 448]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("at", [0.02, 0.5, 0.99])
def test_a_state_with_one_flipped_bit_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: float) -> None:
    x, y = sides()
    expected = neighbours(x, y, 5, **SHAPE)
    interrupt(monkeypatch, x, y, tmp_path)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 4
    path.write_bytes(content)
    begun = stop_after(monkeypatch, 100)
    assert equal(neighbours(x, y, 5, state=State(tmp_path, 0), **SHAPE), expected)
    assert begun[0].start == 0
