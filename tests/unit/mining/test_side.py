"""One side of a search: its rows on the grid are the same on every device, however they are read."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from crosslign import vectors
from crosslign.mining.side import SIZES, Side, on_grid
from crosslign.vectors import CHUNK, GRID, row_norms, to_grid

CPU = torch.device("cpu")
ALL = slice(0, 2000)


def rows(dtype: type, n: int = 2000, d: int = 48) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 3, (n, 1))).astype(dtype)


def side(matrix: np.ndarray, keep: int = 1 << 30, chosen: np.ndarray | None = None) -> Side:
    return Side(matrix, chosen, "v", CPU, keep)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_grid_of_tensors_is_that_of_arrays(dtype: type) -> None:
    matrix = rows(dtype)
    scale = GRID / np.linalg.norm(matrix.astype(np.float64), axis=1)
    before = matrix.copy()
    found = on_grid(torch.from_numpy(matrix), torch.from_numpy(scale)).numpy()
    assert np.array_equal(matrix, before)
    assert np.array_equal(found.view(np.int32), to_grid(matrix, scale).view(np.int32))


def test_halves_of_the_grid_go_to_the_even_neighbour() -> None:
    halves = torch.arange(-9, 10)[None].double() / 2
    found = on_grid(halves, torch.ones(1, dtype=torch.float64)) * GRID
    assert found[0].tolist() == [-4, -4, -4, -3, -2, -2, -2, -1, 0, 0, 0, 1, 2, 2, 2, 3, 4, 4, 4]
    assert np.array_equal(found.numpy(), to_grid(halves.numpy(), np.ones(1)) * np.float32(GRID))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("keep", [0, 1 << 30])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_blocks_in_which_a_device_reads_change_no_bit(monkeypatch: pytest.MonkeyPatch, threads: int, keep: int, device: str) -> None:
    matrix = rows(np.float32)
    expected = np.concatenate(
        [
            to_grid(part, GRID / row_norms(part, np.arange(len(part)), "v"))
            for part in (matrix[start : start + CHUNK] for start in range(0, len(matrix), CHUNK))
        ]
    )
    monkeypatch.setitem(SIZES, "cpu", SIZES[device])
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    found = side(matrix, keep)
    assert np.array_equal(found.grid(ALL).numpy(), expected)
    some = torch.tensor([7, 1999, 7, 512])
    assert np.array_equal(found.grid(some).numpy(), expected[some])


@pytest.mark.parametrize("device", sorted(SIZES))
def test_devices_read_whole_blocks_of_rows_whose_lengths_are_taken_at_once(device: str) -> None:
    assert SIZES[device].read % CHUNK == 0


@pytest.mark.parametrize("order", ["<", ">"])
def test_files_that_may_only_be_read_are_read_in_either_order_of_bytes(tmp_path: Path, order: str) -> None:
    np.save(tmp_path / "v.npy", rows(np.float32).astype(f"{order}f4"))
    chosen = np.random.default_rng(1).permutation(2000)[:700]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mapped = vectors.open_vectors(tmp_path / "v.npy")
        found = [side(mapped, keep).grid(ALL) for keep in (0, 1 << 30)]
        few = side(mapped, 0, chosen).grid(slice(0, 700))
    assert torch.equal(found[0], side(rows(np.float32)).grid(ALL))
    assert torch.equal(found[0], found[1])
    assert torch.equal(few, found[0][torch.from_numpy(chosen)])


@pytest.mark.parametrize("read", [CHUNK, 4 * CHUNK])
def test_the_first_row_without_a_direction_is_named_whichever_thread_finds_one(monkeypatch: pytest.MonkeyPatch, read: int) -> None:
    monkeypatch.setitem(SIZES, "cpu", replace(SIZES["cpu"], read=read))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    matrix = rows(np.float32)
    matrix[[1999, 1031, 1030]] = 0
    with pytest.raises(vectors.VectorError) as error:
        side(matrix)
    assert (error.value.matrix, error.value.row) == ("v", 1030)


def test_the_same_side_on_another_device_reads_nothing_again() -> None:
    matrix = rows(np.float32)
    for keep in (0, 1 << 30):
        one = side(matrix, keep)
        other = one.on(torch.device("cpu"))
        assert torch.equal(other.centre, one.centre)
        assert torch.equal(other.grid(ALL), one.grid(ALL))
    with torch.device("meta"):
        moved = side(matrix).on(torch.device("meta"))
    assert moved.centre.device == moved.grid(ALL).device == moved.device == torch.device("meta")
