"""The search on a GPU gives the bytes that it gives on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours, State
from crosslign.mining.search import Search
from crosslign.mining.side import Side

TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, None], ids=["float32", "bfloat16", "its own"])


def equal(one: Neighbours, other: Neighbours) -> bool:
    names = ("forward_indices", "forward_scores", "backward_indices", "backward_scores")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def clusters(n: int, d: int, seed: int) -> np.ndarray:
    """Return vectors in clusters; of every seven, two are the same."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((max(2, n // 8), d))
    rows = centres[rng.integers(0, len(centres), n)] + rng.standard_normal((n, d))
    rows[6::7] = rows[5::7][: len(rows[6::7])]
    return rows.astype(np.float32)


@TYPES
@pytest.mark.parametrize("tile", [None, (64, 48), (32, 16)], ids=["one tile", "several", "smaller than k"])
def test_neighbours_are_those_of_a_cpu(cuda, dtype, tile):
    x, y = clusters(203, 24, 1), clusters(150, 24, 2)
    expected = neighbours(x, y, 40, k_back=5)
    assert equal(neighbours(x, y, 40, k_back=5, device=cuda, dtype=dtype, tile=tile), expected)


@TYPES
def test_ties_go_to_the_lower_index(cuda, dtype):
    rng = np.random.default_rng(3)
    lattice = rng.integers(-1, 2, (300, 5)).astype(np.float32)
    lattice[~lattice.any(1)] = 1
    alike = np.ones((90, 8), np.float32)
    for x, y in ((lattice, lattice[:170]), (alike, alike[:50])):
        assert equal(neighbours(x, y, 6, device=cuda, dtype=dtype, tile=(64, 32)), neighbours(x, y, 6))


def test_a_side_that_is_not_kept_is_read_again(cuda):
    x, y = clusters(200, 16, 4).astype(np.float16), clusters(180, 16, 5).astype(np.float16)
    rows = np.random.default_rng(0).permutation(200)[:140]
    found = neighbours(x, y, 4, source_rows=rows, device=cuda, keep=0, tile=(64, 96))
    assert equal(found, neighbours(x, y, 4, source_rows=rows))


def test_rows_of_float16_stay_on_the_device_in_half_the_memory_and_give_the_same_bytes(cuda):
    x = clusters(2000, 16, 4).astype(np.float16)
    rows = np.random.default_rng(0).permutation(2000)[:1400]
    for chosen, n in ((None, 2000), (rows, 1400)):
        whole, given = slice(0, n), x.copy()
        expected = Side(x, chosen, "v", torch.device("cpu"), 1 << 30).grid(whole)
        half = Side(given, chosen, "v", torch.device(cuda), n * 16 * 2)
        too_large = Side(given, chosen, "v", torch.device(cuda), n * 16 * 2 - 1)
        wide = Side(given.astype(np.float32), chosen, "v", torch.device(cuda), n * 16 * 2)
        given[:] = 1  # what is kept is not read again
        some = torch.tensor([7, n - 1, 7, 512], device=cuda)
        assert torch.equal(half.grid(whole).cpu(), expected)
        assert torch.equal(half.grid(some).cpu(), expected[some.cpu()])
        assert torch.equal(half.on(torch.device(cuda)).grid(some).cpu(), expected[some.cpu()])
        assert not torch.equal(too_large.grid(whole).cpu(), expected)
        assert torch.equal(wide.grid(whole).cpu(), expected)


def test_a_search_goes_on_where_it_was_stopped(cuda, tmp_path, monkeypatch):
    x, y = clusters(300, 16, 6), clusters(120, 16, 7)
    expected, strip, done = neighbours(x, y, 4), Search._strip, []

    def stopped(self, *args):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(args)
        strip(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Search, "_strip", stopped)
        with pytest.raises(KeyboardInterrupt):
            neighbours(x, y, 4, device=cuda, tile=(64, 48), state=State(tmp_path, every=0))
    left = []
    monkeypatch.setattr(Search, "_strip", lambda self, *args: left.append(args) or strip(self, *args))
    assert equal(neighbours(x, y, 4, device=cuda, tile=(64, 48), state=State(tmp_path, every=0)), expected)
    assert len(left) == 2


def test_two_gpus_share_the_rows(two_gpus):
    x, y = clusters(300, 16, 8), clusters(200, 16, 9)
    assert equal(neighbours(x, y, 4, device=two_gpus, tile=(64, 64)), neighbours(x, y, 4))
