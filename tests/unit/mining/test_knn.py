"""Exact k-NN against full comparisons, on data that is hard on order, ties and rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crosslign.errors import InputError
from crosslign.mining import knn, search, tiles
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours
from crosslign.mining.side import UNIT_ROUNDOFF, Copies, Side, error_bounds, exact_score_matrix, exact_scores
from crosslign.mining.tiles import Direction

CPU = torch.device("cpu")
FIELDS = ("forward_indices", "forward_scores", "backward_indices", "backward_scores")


def equal(one: Neighbours, other: Neighbours) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


def clusters(n: int, d: int, seed: int, spread: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((max(2, n // 8), d))
    return (centres[rng.integers(0, len(centres), n)] + spread * rng.standard_normal((n, d))).astype(np.float32)


def on_grid(x: np.ndarray) -> np.ndarray:
    return Side(x, None, "x", CPU, 1 << 30).grid(slice(0, len(x))).numpy().astype(np.float64)


def full_comparison(x: np.ndarray, y: np.ndarray, k: int) -> Neighbours:
    """Order all pairs by (score, lower index) with plain loops over float64 dot products of the stated grid rows."""
    a, b = on_grid(x), on_grid(y)
    scores = np.array([[np.float32(min(1.0, max(-1.0, np.float32(math.fsum(u * v))))) for v in b] for u in a])

    def best(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.array([sorted(range(len(row)), key=lambda j, row=row: (-row[j], j))[:k] for row in rows])
        return order, np.take_along_axis(rows, order, 1)

    return Neighbours(*best(scores), *best(np.ascontiguousarray(scores.T)))


def hard_cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(3)
    plain, other = clusters(150, 24, 1), clusters(110, 24, 2)
    near = np.repeat(plain[:10], 12, 0) + (1e-7 * rng.standard_normal((120, 24))).astype(np.float32)
    lattice = rng.integers(-1, 2, (120, 5)).astype(np.float32)
    lattice[~lattice.any(1)] = 1
    anisotropic = (rng.standard_normal((130, 24)) * 0.05 + 1).astype(np.float32)
    return {
        "clusters": (plain, other),
        "duplicates": (np.repeat(plain[:15], 9, 0), np.repeat(plain[5:20], 7, 0)),
        "near-equal": (near, near[::-1].copy()),
        "lattice with many ties": (lattice, lattice[:70]),
        "all alike": (np.ones((60, 8), np.float32), np.ones((50, 8), np.float32)),
        "all far": (np.abs(plain), -np.abs(other)),
        "all near": (anisotropic, anisotropic[:90] + np.float32(0.001)),
        "one source": (plain[:1], other),
        "one dimension": (np.array([[1.0], [-2.0], [3.0]]), np.array([[5.0], [-1.0]])),
    }


@pytest.mark.parametrize("case", sorted(hard_cases()))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_equals_a_full_comparison_for_every_tile_size(case: str, dtype: torch.dtype) -> None:
    x, y = hard_cases()[case]
    expected = full_comparison(x, y, 4)
    for tile in ((2048, 2048), (64, 64), (16, 112), (112, 16)):
        assert equal(neighbours(x, y, 4, tile=tile, dtype=dtype), expected), tile
    assert equal(neighbours(x, y, 4), expected), "no tiles"


def test_cosines_are_those_of_the_raw_vectors() -> None:
    x, y = clusters(200, 96, 5), clusters(160, 96, 6)
    found = neighbours(x, y, 3)
    wide = x.astype(np.float64) @ y.astype(np.float64).T
    cosines = wide / np.linalg.norm(x.astype(np.float64), axis=1)[:, None] / np.linalg.norm(y.astype(np.float64), axis=1)
    assert np.abs(np.take_along_axis(cosines, found.forward_indices, 1) - found.forward_scores).max() < 1e-7
    assert np.abs(np.sort(cosines, 1)[:, ::-1][:, :3] - found.forward_scores).max() < 1e-7
    assert np.abs(np.take_along_axis(cosines.T, found.backward_indices, 1) - found.backward_scores).max() < 1e-7


def test_types_shapes_and_cap_on_k() -> None:
    found = neighbours(clusters(20, 6, 1), clusters(7, 6, 2), 50)
    assert found.forward_indices.shape == found.forward_scores.shape == (20, 7)
    assert found.backward_indices.shape == found.backward_scores.shape == (7, 20)
    assert found.forward_indices.dtype == np.int64
    assert found.backward_scores.dtype == np.float32
    assert (np.sort(found.forward_indices, 1) == np.arange(7)).all()


def test_exchanged_sides_give_exchanged_neighbours_and_hold_the_smaller_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = clusters(90, 16, 1), clusters(200, 16, 2)
    held = []
    real = search.Search.__init__
    monkeypatch.setattr(search.Search, "__init__", lambda self, a, b, *rest: held.append(b.n) or real(self, a, b, *rest))
    assert equal(neighbours(x, y, 4, dtype=torch.bfloat16), neighbours(y, x, 4, dtype=torch.bfloat16).turned())
    assert held == [90, 90]


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[int]:
    calls = [0]
    original = getattr(owner, name)

    def counted(*args: object, **kwargs: object) -> object:
        calls[0] += 1
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)
    return calls


def test_ordinary_data_needs_no_dense_tile_and_duplicates_do(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = count_calls(monkeypatch, search.Search, "_score_all")
    x, y = clusters(1500, 128, 1), clusters(1300, 128, 2)
    expected = neighbours(x, y, 4, tile=(512, 512), dtype=torch.bfloat16)
    assert dense[0] == 0
    sides = [(Side(x, None, "x", CPU, 1 << 30), Side(y, None, "y", CPU, 1 << 30))]
    exact = knn._Plan(sides, (4, 4), search.Step(torch.float32, exact=True), (512, 512), None, {}).run()
    assert dense[0] == 9
    assert equal(expected, exact)
    same = np.repeat(x[:2], 400, 0)
    neighbours(same, same, 4, tile=(512, 512), dtype=torch.bfloat16)
    assert dense[0] > 9


def test_few_pairs_are_rescored(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = []
    monkeypatch.setattr(tiles, "exact_scores", lambda a, b: scored.append(len(a)) or exact_scores(a, b))
    near = neighbours(clusters(1500, 128, 1), clusters(1300, 128, 2), 4, tile=(512, 512), dtype=torch.bfloat16)
    forward = {(source, target) for source, row in enumerate(near.forward_indices.tolist()) for target in row}
    backward = {(source, target) for target, row in enumerate(near.backward_indices.tolist()) for source in row}
    # Each pair of the result once, though it may stand in two lists, and few besides.
    assert len(forward | backward) <= sum(scored) < 1.2 * len(forward | backward) < 0.9 * (len(forward) + len(backward))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("n", "m"), [(90, 300), (300, 90)])
@pytest.mark.parametrize("k_back", [0, 1, 7])
def test_targets_may_have_other_numbers_of_neighbours_or_none(n: int, m: int, k_back: int, dtype: torch.dtype) -> None:
    x, y = clusters(n, 24, 1), clusters(m, 24, 2)
    both, found = neighbours(x, y, 7, dtype=dtype), neighbours(x, y, 4, k_back=k_back, dtype=dtype, tile=(64, 32))
    assert np.array_equal(found.forward_indices, both.forward_indices[:, :4])
    assert np.array_equal(found.forward_scores, both.forward_scores[:, :4])
    assert np.array_equal(found.backward_indices, both.backward_indices[:, :k_back])
    assert np.array_equal(found.backward_scores, both.backward_scores[:, :k_back])
    same = np.ones((50, 8), np.float32)
    assert neighbours(same, same, 3, k_back=k_back, dtype=dtype).forward_indices.tolist() == [[0, 1, 2]] * 50


def test_without_neighbours_of_targets_their_pairs_are_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = []
    monkeypatch.setattr(tiles, "exact_scores", lambda a, b: scored.append(len(a)) or exact_scores(a, b))
    neighbours(clusters(40, 32, 1), clusters(3000, 32, 2), 4, k_back=0, tile=(512, 512), dtype=torch.bfloat16)
    assert 40 * 4 <= sum(scored) < 40 * 12


@pytest.mark.parametrize("broken", [("bfloat16",), ("bfloat16", "float32")])
def test_a_device_that_breaks_the_bound_costs_time_and_not_correctness(monkeypatch: pytest.MonkeyPatch, broken: tuple[str, ...]) -> None:
    x, y = clusters(300, 32, 1), clusters(250, 32, 2)
    expected = neighbours(x, y, 4, dtype=torch.float32, tile=(128, 128))
    product = search._product

    def noisy(left: torch.Tensor, right: torch.Tensor, buffer: torch.Tensor) -> torch.Tensor:
        tile = product(left, right, buffer)
        if str(left.dtype).removeprefix("torch.") in broken:
            tile += 0.2 * torch.randn(tile.shape, generator=torch.Generator().manual_seed(0)).to(tile.dtype)
        return tile

    monkeypatch.setattr(search, "_product", noisy)
    runs = count_calls(monkeypatch, search.Search, "run")
    assert equal(neighbours(x, y, 4, dtype=torch.bfloat16, tile=(128, 128)), expected)
    assert runs[0] == len(broken) + 1


def test_rounding_of_the_tile_itself_breaks_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    # Rows of +-1/32 around a centre of zero are exact in bfloat16; cosines of 511/512 are not.
    half = np.random.default_rng(0).choice([-1.0, 1.0], (100, 1024))
    x = np.concatenate([half, -half])
    y = x.copy()
    y[np.arange(200), np.arange(200)] *= -1
    runs = count_calls(monkeypatch, search.Search, "run")
    found = neighbours(x, y, 4, dtype=torch.bfloat16)
    assert runs[0] == 1
    assert (found.forward_indices[:, 0] == np.arange(200)).all()
    assert (found.forward_scores[:, 0] == np.float32(511 / 512)).all()


def test_early_rescoring_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = clusters(700, 32, 1, 0.2), clusters(600, 32, 2, 0.2)
    expected = neighbours(x, y, 4, tile=(128, 128), dtype=torch.bfloat16)
    resolves = count_calls(monkeypatch, Direction, "resolve")
    neighbours(x, y, 4, tile=(128, 128), dtype=torch.bfloat16)
    usual = resolves[0]
    monkeypatch.setattr(tiles, "PENDING", 64)
    monkeypatch.setattr(tiles, "PENDING_PER_NEIGHBOUR", 0)
    assert equal(neighbours(x, y, 4, tile=(128, 128), dtype=torch.bfloat16), expected)
    assert resolves[0] > 2 * usual


def test_padding_is_never_rescored(monkeypatch: pytest.MonkeyPatch) -> None:
    # The last strip has 17 rows in tiles of 32, and ten columns in one block: four places, no floor yet, and few column candidates.
    x, y = clusters(3025, 12, 0), clusters(10, 12, 1)
    expected = neighbours(x, y, 4)
    monkeypatch.setattr(tiles, "PENDING", 1)
    monkeypatch.setattr(tiles, "PENDING_PER_NEIGHBOUR", 0)
    waiting = []
    resolve = Direction.resolve
    monkeypatch.setattr(Direction, "resolve", lambda self, *args: waiting.extend(e for *_, e in self._pending) or resolve(self, *args))
    assert equal(neighbours(x, y, 4, dtype=torch.bfloat16, tile=(32, 16)), expected)
    assert waiting
    assert all(torch.isfinite(entries).all() for entries in waiting)


def test_memory_mapped_files_row_choices_and_small_caches(tmp_path: object) -> None:
    x, y = clusters(300, 16, 1).astype(np.float16), clusters(280, 16, 2).astype(np.float16)
    rows = np.random.default_rng(0).permutation(300)[:200]
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    expected = neighbours(x[rows].astype(np.float32), y.astype(np.float32), 4)
    before = x.copy()
    for keep in (1 << 30, 0):
        assert equal(neighbours(tmp_path / "x.npy", tmp_path / "y.npy", 4, source_rows=rows, keep=keep, tile=(64, 96)), expected)
    assert np.array_equal(before, np.load(tmp_path / "x.npy"))


@pytest.mark.parametrize("d", [1, 2, 33, 768, 4096])
def test_tiles_stay_within_the_bound(d: int) -> None:
    rng = np.random.default_rng(d)
    # Coordinates just beside the midpoints of bfloat16 round the farthest, all in one direction.
    midpoints = (1 + (2 * rng.integers(0, 128, (64, d)) + 1) / 256) * (1 + 2.0**-12 * rng.random((64, d)))
    for x in (rng.standard_normal((64, d)), midpoints, np.abs(rng.standard_normal((64, d))) ** 3, rng.standard_normal((64, d)) + 20):
        for y in (x, -x, rng.standard_normal((48, d))):
            sides = [Side(v.astype(np.float32), None, "v", CPU, 1 << 30) for v in (x, y)]
            exact = exact_score_matrix(*(side.grid(slice(0, side.n)) for side in sides)).double()
            for dtype in (torch.bfloat16, torch.float32):
                own, other = Copies(*sides, dtype, first=True), Copies(*sides[::-1], dtype, first=False)
                product = (own.block(slice(0, len(x)), 16) @ other.block(slice(0, len(y)), 16).T).double()
                error = (product + own.shift - exact).abs() - product.abs() * UNIT_ROUNDOFF[dtype]
                assert (error <= error_bounds(own, other)[:, None]).all()
                assert (error <= error_bounds(other, own)).all()


def test_vectors_that_point_the_same_way_have_tight_bounds() -> None:
    same_way = (1 + 0.03 * np.random.default_rng(0).standard_normal((500, 64))).astype(np.float32)
    side = Side(same_way, None, "v", CPU, 1 << 30)
    copies = Copies(side, side, torch.bfloat16, first=True)
    cosines = exact_score_matrix(side.grid(slice(0, 500)), side.grid(slice(0, 500)))
    # Without centres the bound would be about 2^-8, far more than the spread of these cosines.
    assert error_bounds(copies, copies).max() < cosines.std() / 5


def test_exact_scores_do_not_depend_on_the_order_of_summation() -> None:
    x = torch.from_numpy(on_grid(clusters(50, 700, 1)).astype(np.float32))
    y = torch.from_numpy(on_grid(clusters(50, 700, 2)).astype(np.float32))
    order = torch.randperm(700, generator=torch.Generator().manual_seed(1))
    matrix = exact_score_matrix(x, y)
    assert torch.equal(matrix, exact_score_matrix(x[:, order].contiguous(), y[:, order].contiguous()))
    assert torch.equal(matrix.diagonal(), exact_scores(x, y))


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), m=st.integers(1, 40), k=st.integers(1, 6))
def test_permuted_rows_give_permuted_neighbours(seed: int, n: int, m: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, 8)), rng.standard_normal((m, 8))
    at, to = rng.permutation(n), rng.permutation(m)
    plain, moved = neighbours(x, y, k), neighbours(x[at], y[to], k)
    assert np.array_equal(plain.forward_scores[at], moved.forward_scores)
    assert np.array_equal(plain.forward_indices[at], to[moved.forward_indices])
    assert np.array_equal(plain.backward_indices[to], at[moved.backward_indices])


SIZES = st.sampled_from([16, 32, 48, 64])


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 90), m=st.integers(1, 90), k=st.integers(1, 6), tile=st.tuples(SIZES, SIZES))
def test_ties_go_to_the_lower_index(seed: int, n: int, m: int, k: int, tile: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    palette = np.array([[1.0, 0], [0.6, 0.8], [0, 1], [-1, 0]])
    x, y = palette[rng.integers(0, 4, n)], palette[rng.integers(0, 4, m)]
    found = neighbours(x, y, k, dtype=torch.bfloat16, tile=tile)
    equal_next = np.diff(found.forward_scores, axis=1) == 0
    assert (np.diff(found.forward_indices, axis=1)[equal_next] > 0).all()
    assert equal(found, full_comparison(x, y, k))


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 120), m=st.integers(1, 120), k=st.integers(1, 9), tile=st.tuples(SIZES, SIZES))
@example(seed=0, n=3025, m=10, k=4, tile=(32, 16))
@example(seed=0, n=10, m=3025, k=4, tile=(16, 32))
def test_every_shape_of_edge_tiles(seed: int, n: int, m: int, k: int, tile: tuple[int, int]) -> None:
    x, y = clusters(n, 12, seed), clusters(m, 12, seed + 1)
    expected = neighbours(x, y, k, dtype=torch.float32, tile=(2048, 2048))
    assert equal(neighbours(x, y, k, dtype=torch.bfloat16, tile=tile), expected)
    wide = on_grid(x) @ on_grid(y).T
    assert np.abs(-np.sort(-wide, 1)[:, :k] - expected.forward_scores).max() < 1e-7


def test_sides_of_more_pairs_than_are_compared_whole_are_searched_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = clusters(64, 8, 1), clusters(50, 8, 2)
    runs = count_calls(monkeypatch, search.Search, "run")
    monkeypatch.setattr(knn, "WHOLE", 64 * 50)
    expected = neighbours(x, y, 4, k_back=0)
    assert (runs[0], expected.backward_scores.shape) == (0, (50, 0))
    monkeypatch.setattr(knn, "WHOLE", 64 * 50 - 1)
    assert equal(neighbours(x, y, 4, k_back=0), expected)
    assert runs[0] == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("side", ["sources", "targets"])
@pytest.mark.parametrize("dtype", [None, torch.float32])
def test_rows_without_direction_are_refused_by_number(value: float, side: str, dtype: torch.dtype | None) -> None:
    bad, good = clusters(3000, 4, 1), clusters(20, 4, 2)
    bad[2500] = value
    vectors = (bad, good) if side == "sources" else (good, bad)
    with pytest.raises(InputError, match=f"{side}, row 2500"):
        neighbours(*vectors, 4, dtype=dtype)


def test_other_bad_input_is_refused(tmp_path: object) -> None:
    good = clusters(20, 4, 1)
    with pytest.raises(InputError, match=r"sources and targets: .* 4 and 5 "):
        neighbours(good, clusters(20, 5, 1), 4)
    with pytest.raises(InputError, match=r"sources: .*vectors"):
        neighbours(good[:0], good, 4)
    for tile in (None, (16, 16)):
        with pytest.raises(InputError, match=r"targets: .*vectors"):
            neighbours(good, good, 4, target_rows=np.arange(0), tile=tile)
    with pytest.raises(InputError, match=r"nearest neighbours: k .*\b0$"):
        neighbours(good, good, 0)
    with pytest.raises(InputError, match="floating"):
        neighbours(good.astype(np.int64), good, 4)
    with pytest.raises(InputError, match=r"none\.npy: .*missing"):
        neighbours(tmp_path / "none.npy", good, 4)
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(InputError, match=r"text\.npy: .*readable"):
        neighbours(tmp_path / "text.npy", good, 4)
    with pytest.raises(ValueError, match=r"\b16, .* \(20, 16\)"):
        neighbours(good, good, 4, tile=(20, 16))
