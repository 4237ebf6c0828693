"""Margin mining against an example worked out by hand, and against loops."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.errors import InputError
from crosslign.mining import margin
from crosslign.mining.dedup import unify
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours
from crosslign.mining.margin import Pairs, candidate_scores, mine, neighbour_means

Found = Callable[[int], Neighbours]
X = np.array([(1, 0), (3, 4), (0, 1), (4, 3)], dtype=np.float64)
Y = np.array([(12, 5), (5, 12), (4, 3), (0, 1), (8, 15)], dtype=np.float64)


COSINES = """12/13 5/13 4/5 0/1 8/17
56/65 63/65 24/25 4/5 84/85
5/13 12/13 3/5 1/1 15/17
63/65 56/65 1/1 3/5 77/85"""


@pytest.fixture(params=[np.float64, np.float32])
def found(request: pytest.FixtureRequest) -> Found:
    """Find the k nearest neighbours of the example, in float64 and in float32."""
    return lambda k: neighbours(X.astype(request.param), Y.astype(request.param), k)


def test_all_cosines(found: Found) -> None:
    exact = np.array([[float(Fraction(cell)) for cell in row.split()] for row in COSINES.splitlines()])
    five = found(5)
    assert five.forward_scores == pytest.approx(np.take_along_axis(exact, five.forward_indices, 1), abs=1e-7)
    assert five.backward_scores == pytest.approx(np.take_along_axis(exact.T, five.backward_indices, 1), abs=1e-7)
    assert [sorted(row) for row in five.forward_indices.tolist()] == [[0, 1, 2, 3, 4]] * 4


def check(pairs: Pairs, expected: list[tuple[int, int, float]]) -> None:
    assert list(zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)) == [(s, t) for s, t, _ in expected]
    assert pairs.scores == pytest.approx([score for _, _, score in expected], abs=1e-6)


def test_neighbours_k2(found: Found) -> None:
    two = found(2)
    assert two.forward_indices.tolist() == [[0, 2], [4, 1], [3, 1], [2, 0]]
    assert two.backward_indices.tolist() == [[3, 0], [1, 2], [3, 1], [2, 1], [1, 3]]
    assert two.forward_scores.mean(1) == pytest.approx([0.86153846, 0.97873303, 0.96153846, 0.98461538], abs=1e-6)
    assert two.backward_scores.mean(1) == pytest.approx([0.94615385, 0.94615385, 0.98, 0.9, 0.94705882], abs=1e-6)
    assert two.forward_scores[0] == pytest.approx([12 / 13, 4 / 5], abs=1e-7)
    between = (two.forward_scores.mean(1)[0] + two.backward_scores.mean(1)[0]) / 2  # what the margin of (0, 0) is measured against
    assert between == pytest.approx(0.90384615, abs=1e-6)
    assert [12 / 13 / between, 12 / 13 - between] == pytest.approx([1.02127660, 0.01923077], abs=1e-6)


RATIO_K2 = """1.02127660 0.42553191 0.86883876 0.00000000 0.52039029
0.89515750 1.00705219 0.98022547 0.85163776 1.02631579
0.40322581 0.96774194 0.61806656 1.07438017 0.92460882
1.00398406 0.89243028 1.01801096 0.63673469 0.93792457"""
DISTANCE_K2 = """0.01923077 -0.51923077 -0.12076923 -0.88076923 -0.43371041
-0.10090498 0.00678733 -0.01936652 -0.13936652 0.02533937
-0.56923077 -0.03076923 -0.37076923 0.06923077 -0.07194570
0.00384615 -0.10384615 0.01769231 -0.34230769 -0.05995475"""


@pytest.mark.parametrize(("margin", "table"), [("ratio", RATIO_K2), ("distance", DISTANCE_K2)])
def test_every_candidate_cell_k2(found: Found, margin: str, table: str) -> None:
    cells = np.array([[float(cell) for cell in row.split()] for row in table.splitlines()])
    two = found(2)
    f, b = neighbour_means(two.forward_scores), neighbour_means(two.backward_scores)
    forward = candidate_scores(two.forward_scores, two.forward_indices, f, b, margin)
    backward = candidate_scores(two.backward_scores, two.backward_indices, b, f, margin)
    assert forward == pytest.approx(np.take_along_axis(cells, two.forward_indices, 1), abs=1e-6)
    assert backward == pytest.approx(np.take_along_axis(cells.T, two.backward_indices, 1), abs=1e-6)


def test_ratio_k2(found: Found) -> None:
    two = found(2)
    check(mine(two, "ratio", "fwd"), [(0, 0, 1.02127660), (1, 4, 1.02631579), (2, 3, 1.07438017), (3, 2, 1.01801096)])
    check(
        mine(two, "ratio", "bwd"),
        [(0, 0, 1.02127660), (1, 1, 1.00705219), (3, 2, 1.01801096), (2, 3, 1.07438017), (1, 4, 1.02631579)],
    )
    check(mine(two, "ratio", "intersect"), [(0, 0, 1.02127660), (1, 4, 1.02631579), (2, 3, 1.07438017), (3, 2, 1.01801096)])
    check(mine(two, "ratio", "max"), [(2, 3, 1.07438017), (1, 4, 1.02631579), (0, 0, 1.02127660), (3, 2, 1.01801096)])


def test_distance_k2(found: Found) -> None:
    check(mine(found(2), "distance", "max"), [(2, 3, 0.06923077), (1, 4, 0.02533937), (0, 0, 0.01923077), (3, 2, 0.01769231)])


def test_absolute_k2_with_two_exact_ties(found: Found) -> None:
    two = found(2)
    check(mine(two, "absolute", "fwd"), [(0, 0, 0.92307692), (1, 4, 0.98823529), (2, 3, 1.0), (3, 2, 1.0)])
    check(
        mine(two, "absolute", "bwd"),
        [(3, 0, 0.96923077), (1, 1, 0.96923077), (3, 2, 1.0), (2, 3, 1.0), (1, 4, 0.98823529)],
    )
    check(mine(two, "absolute", "intersect"), [(1, 4, 0.98823529), (2, 3, 1.0), (3, 2, 1.0)])
    check(mine(two, "absolute", "max"), [(2, 3, 1.0), (3, 2, 1.0), (1, 4, 0.98823529), (0, 0, 0.92307692)])


def test_k3(found: Found) -> None:
    three = found(3)
    assert three.forward_scores.mean(1) == pytest.approx([0.73122172, 0.97248869, 0.93514329, 0.95837104], abs=1e-6)
    assert three.backward_scores.mean(1) == pytest.approx([0.91794872, 0.91794872, 0.92, 0.8, 0.92549020], abs=1e-6)
    check(mine(three, "ratio", "max"), [(2, 3, 1.15264256), (0, 0, 1.11944394), (3, 2, 1.06475236), (1, 4, 1.04135541)])
    check(mine(three, "distance", "max"), [(2, 3, 0.13242836), (0, 0, 0.09849170), (3, 2, 0.06081448), (1, 4, 0.03924585)])


def test_k4_where_max_is_not_fwd_without_repeats(found: Found) -> None:
    four = found(4)
    assert four.backward_indices.shape == (5, 4)
    assert four.forward_scores.mean(1) == pytest.approx([0.64457014, 0.94475113, 0.85135747, 0.93416290], abs=1e-6)
    assert four.backward_scores.mean(1) == pytest.approx([0.78461538, 0.78461538, 0.84, 0.6, 0.81176471], abs=1e-6)
    check(mine(four, "ratio", "fwd"), [(0, 0, 1.29175241), (1, 4, 1.12522219), (2, 3, 1.37802027), (3, 0, 1.12781361)])
    check(
        mine(four, "ratio", "bwd"),
        [(0, 0, 1.29175241), (2, 1, 1.12847462), (3, 2, 1.12729220), (2, 3, 1.37802027), (1, 4, 1.12522219)],
    )
    check(mine(four, "ratio", "intersect"), [(0, 0, 1.29175241), (1, 4, 1.12522219), (2, 3, 1.37802027)])
    check(mine(four, "ratio", "max"), [(2, 3, 1.37802027), (0, 0, 1.29175241), (3, 2, 1.12729220), (1, 4, 1.12522219)])
    check(mine(four, "distance", "max"), [(2, 3, 0.27432127), (0, 0, 0.20848416), (3, 2, 0.11291855), (1, 4, 0.10997738)])


@pytest.mark.parametrize(("target", "kept"), [((1.0, 0.1), 1), ((0.0, 1.0), 0), ((-1.0, 0.1), 0)])
def test_max_keeps_scores_above_zero_only(target: tuple[float, float], kept: int) -> None:
    only = neighbours(np.array([[1.0, 0.0]]), np.array([target]), 1)
    assert len(mine(only, "absolute", "max")) == kept
    assert len(mine(only, "absolute", "fwd")) == len(mine(only, "absolute", "intersect")) == 1


def test_max_with_distance_drops_pairs_below_their_neighbourhood() -> None:
    x, y = np.array([[1.0, 0], [0.8, 0.6]]), np.array([[1.0, 0]])
    check(mine(neighbours(x, y, 2), "distance", "max"), [(0, 0, 1 - (1 + 0.9) / 2)])
    check(mine(neighbours(x[1:], y, 2), "distance", "max"), [])


def test_a_ratio_to_zero_has_no_score() -> None:
    flat = Neighbours(np.array([[0]]), np.array([[0.0]], np.float32), np.array([[0]]), np.array([[0.0]], np.float32))
    assert mine(flat, "ratio", "fwd").scores.tolist() == [-np.inf]
    assert len(mine(flat, "ratio", "max")) == 0


def test_a_ratio_to_a_mean_below_zero_has_one() -> None:
    assert margin.margin_scores(np.array([-0.5, 0.5]), np.array([-0.25, -0.25]), "ratio").tolist() == [2.0, -2.0]


def test_margins_of_float32_cosines_are_reckoned_in_float64() -> None:
    cosines = np.array([[0.9, 0.7, 0.1]], np.float32)
    near = Neighbours(np.array([[0, 1, 2]]), cosines, np.zeros((3, 1), np.int64), cosines.T)
    best, *_ = (wide := cosines[0].astype(np.float64))
    assert mine(near, "ratio", "fwd").scores.tolist() == pytest.approx([best / ((wide.mean() + best) / 2)], rel=1e-12)


def test_of_equal_margins_the_lower_index_is_best() -> None:
    """Source 0 has cosines 3/4 and 1/4 to targets 1 and 0, whose means are 1 and 0: both ratios are 1."""
    near = Neighbours(np.array([[1, 0]]), np.array([[0.75, 0.25]]), np.array([[0], [0]]), np.array([[0.0], [1.0]]))
    check(mine(near, "ratio", "fwd"), [(0, 0, 1.0)])
    check(mine(near.turned(), "ratio", "bwd"), [(0, 0, 1.0)])


def slow_max(x: np.ndarray, y: np.ndarray, k: int) -> list[tuple[int, int]]:
    """LASER's mine_bitexts with loops, float64, one-to-one, ratio."""
    x, y = x / np.linalg.norm(x, axis=1)[:, None], y / np.linalg.norm(y, axis=1)[:, None]
    cos = x @ y.T
    kx, ky = min(k, len(y)), min(k, len(x))
    near_x = [sorted(range(len(y)), key=lambda j, i=i: (-cos[i, j], j))[:kx] for i in range(len(x))]
    near_y = [sorted(range(len(x)), key=lambda i, j=j: (-cos[i, j], i))[:ky] for j in range(len(y))]
    f = [sum(cos[i, j] for j in near_x[i]) / kx for i in range(len(x))]
    b = [sum(cos[i, j] for i in near_y[j]) / ky for j in range(len(y))]
    score = lambda i, j: cos[i, j] / ((f[i] + b[j]) / 2)  # noqa: E731
    pool = {(i, max(near_x[i], key=lambda j, i=i: score(i, j))) for i in range(len(x))}
    pool |= {(max(near_y[j], key=lambda i, j=j: score(i, j)), j) for j in range(len(y))}
    used_x, used_y, out = set(), set(), []
    for i, j in sorted(pool, key=lambda pair: -score(*pair)):
        if i not in used_x and j not in used_y and score(i, j) > 0:
            used_x.add(i)
            used_y.add(j)
            out.append((i, j))
    return out


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 30), m=st.integers(3, 30), k=st.integers(2, 5), at_once=st.sampled_from([1, 4, 8192]))
def test_max_equals_the_reference_written_with_loops(seed: int, n: int, m: int, k: int, at_once: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, 6)) + 1, rng.standard_normal((m, 6)) + 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(margin, "AT_ONCE", at_once)
        pairs = mine(neighbours(x, y, k), "ratio", "max")
    assert list(zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)) == slow_max(x, y, k)


def one_by_one(pairs: Pairs) -> list[tuple[int, int]]:
    used_sources, used_targets, out = set(), set(), []
    for pair in zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True):
        if pair[0] not in used_sources and pair[1] not in used_targets:
            used_sources.add(pair[0])
            used_targets.add(pair[1])
            out.append(pair)
    return out


@pytest.mark.parametrize("few", [1, 2, 7, 256])
@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    number=st.integers(1, 400),
    items=st.integers(1, 200),
    levels=st.integers(1, 50),
    at_once=st.sampled_from([1, 30, 8192]),
)
def test_pairs_accepted_at_once_are_those_accepted_one_by_one(
    few: int, seed: int, number: int, items: int, levels: int, at_once: int
) -> None:
    rng = np.random.default_rng(seed)
    pairs = Pairs(rng.integers(0, items, number), rng.integers(0, items, number), rng.integers(0, levels, number) / 7.0)
    ranked = pairs.ranked()
    keys = list(zip((-ranked.scores).tolist(), ranked.sources.tolist(), ranked.targets.tolist(), strict=True))
    assert keys == sorted(zip((-pairs.scores).tolist(), pairs.sources.tolist(), pairs.targets.tolist(), strict=True))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(margin, "FEW", few)
        patched.setattr(margin, "AT_ONCE", at_once)
        found = margin._greedy(ranked)
    assert list(zip(found.sources.tolist(), found.targets.tolist(), strict=True)) == one_by_one(ranked)


def test_a_chain_in_which_each_pair_takes_the_next_one_away() -> None:
    steps = np.arange(3000)
    chain = Pairs((steps + 1) // 2, steps // 2, -steps / 1.0)  # 0-0, 1-0, 1-1, 2-1, ...: every second pair is accepted
    found = margin._greedy(chain)
    assert found.sources.tolist() == found.targets.tolist() == list(range(1500))


def test_unknown_names_are_refused(found: Found) -> None:
    with pytest.raises(InputError, match=r"'ratios'.*'ratio'"):
        mine(found(2), "ratios", "max")
    with pytest.raises(InputError, match="retrieval 'best'"):
        mine(found(2), "ratio", "best")


def test_unify() -> None:
    text, ids = unify(["one", "two", "two", "three"], "text"), unify(["one", "two", "two", "three"], "id")
    assert text.items.tolist() == [0, 1, 3]
    assert text.reachable.tolist() == [True, False, True]
    assert ids.items.tolist() == [0, 1, 2, 3]
    assert ids.identity
    assert not text.identity
    assert unify(["a", "b"], "text").identity
