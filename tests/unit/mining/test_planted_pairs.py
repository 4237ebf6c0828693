"""Planted pairs: hidden, found, and what they say of precision and recall; the truth is hidden from the estimator."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from test_own_files import write_texts

from crosslign.errors import InputError
from crosslign.mining import planted
from crosslign.mining.calibrate import calibrate, usable
from crosslign.mining.calibration import asked_threshold, choose, curve, distance, unlike
from crosslign.mining.expected import calibration_lines
from crosslign.mining.knn import neighbours
from crosslign.mining.margin import mine
from crosslign.mining.pairs import chosen_pairs
from crosslign.mining.planted import Sides, hide


def sentences(rng, number, noise=1.6, of=None, d=24):
    """Vectors of sentences and of their translations, which lie around one point, some nearer than others."""
    meaning = rng.standard_normal((number, d)) if of is None else of
    apart = noise * rng.uniform(0.2, 1.0, (number, 1))
    return tuple((meaning + apart * rng.standard_normal((number, d)) / 2).astype(np.float32) for _ in range(2))


def sides(seed, both=150, alone=150, plants=100, noise=1.6):
    """Two sides of which a part are translations, in any order; gold (bool of row pairs), and plants."""
    rng = np.random.default_rng(seed)
    x, y = sentences(rng, both + 2 * alone, noise)
    left, right = rng.permutation(both + alone), rng.permutation(np.append(np.arange(both), np.arange(both + alone, both + 2 * alone)))
    rows = np.arange(plants)
    return x[left], y[right], left, right, Sides(x[left], y[right], *sentences(rng, plants, noise), rows=(rows, rows))


@pytest.mark.parametrize("k", [1, 3])
def test_lists_with_plants_are_those_of_a_search_of_all_rows_together(k):
    x, y, _, _, given = sides(0, both=40, alone=30, plants=20)
    sources, targets = np.array([3, 5, 7, 1]), np.array([3, 9])
    found = planted._joined(neighbours(x, y, k), given, sources, targets, "cpu")
    whole = neighbours(np.concatenate([x, given.plant_sources[sources]]), np.concatenate([y, given.plant_targets[targets]]), k)
    for name in ("forward_indices", "forward_scores", "backward_indices", "backward_scores"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name


@pytest.mark.parametrize("retrieval", ["max", "fwd", "bwd", "intersect"])
def test_what_became_of_a_plant_is_what_a_mining_of_all_rows_says(retrieval):
    """Each round again, by a search of concatenated matrices and the mining of its lists, pair by pair."""
    x, y, _, _, given = sides(1, both=60, alone=40, plants=60)
    found = hide(neighbours(x, y, 4), given, "ratio", retrieval, seed=3)
    expected = {name: np.full(60, -np.inf) for name in ("right", "source_wrong", "target_wrong", "lone_source", "lone_target")}
    for paired, sources, targets in planted._rounds(60, 100, np.random.default_rng(3)):
        left, right = np.append(paired, sources), np.append(paired, targets)
        whole = neighbours(np.concatenate([x, given.plant_sources[left]]), np.concatenate([y, given.plant_targets[right]]), 4)
        for s, t, score in zip(*(column.tolist() for column in vars(mine(whole, "ratio", retrieval)).values()), strict=True):
            plant, other = (left[s - 100] if s >= 100 else None), (right[t - 100] if t >= 100 else None)
            if plant is not None and plant == other and s - 100 < len(paired):
                expected["right"][plant] = score
                continue
            for name, one, place in (("source", plant, s), ("target", other, t)):
                if one is not None:
                    key = f"{name}_wrong" if place - 100 < len(paired) else f"lone_{name}"
                    expected[key][one] = max(expected[key][one], score)
    for name, values in expected.items():
        assert np.array_equal(getattr(found, name), values), name
    assert np.isfinite(found.right).mean() > 0.3


def truth(pairs, left, right, threshold, both):
    kept = pairs.take(pairs.scores >= threshold)
    correct = int((left[kept.sources] == right[kept.targets]).sum())
    return correct / len(kept), correct / both


@pytest.mark.long
@pytest.mark.parametrize(("both", "alone", "noise"), [(150, 150, 1.6), (40, 400, 1.3)])
def test_intervals_hold_the_truth_in_nine_of_ten_draws(both, alone, noise):
    held = {"precision": [], "recall": []}
    for seed in range(60):
        x, y, left, right, given = sides(seed, both, alone, noise=noise)
        near = neighbours(x, y, 4)
        pairs = chosen_pairs(near, "ratio", "max")
        drawn = curve(pairs, (len(x), len(y)), hide(near, given, "ratio", "max", seed=seed), "max", seed=seed)
        row = choose(drawn.records(), precision=0.9)
        if row is None:
            continue
        for name, value in zip(held, truth(pairs, left, right, row["threshold"], both), strict=True):
            held[name].append(row[name][0] <= value <= row[name][2])
    assert len(held["precision"]) >= 50
    assert np.mean(held["precision"]) >= 0.9
    assert np.mean(held["recall"]) >= 0.9


def files(folder, seed=5, plants=100):
    """Matrices and sentences of two sides and of plants, on disk."""
    x, y, left, right, given = sides(seed, plants=plants)
    matrices = {"source": x, "target": y, "plant_source": given.plant_sources, "plant_target": given.plant_targets}
    texts = {"source": [f"s{i:04}" for i in left], "target": [f"t{i:04}" for i in right]}
    texts |= {f"plant_{side}": [f"{side[0]}p{i:03}" for i in range(plants)] for side in ("source", "target")}
    for side, matrix in matrices.items():
        np.save(folder / f"{side}.npy", matrix)
        write_texts(folder / f"{side}.parquet", texts[side])
    vectors, rows = ({side: folder / f"{side}.{form}" for side in matrices} for form in ("npy", "parquet"))
    return neighbours(x, y, 4), vectors, rows, (left, right)


def test_a_record_holds_the_truth_and_is_told_in_words(tmp_path):
    near, vectors, texts, (left, right) = files(tmp_path)
    record = calibrate(near, vectors, texts, "ratio", "max")
    assert record == calibrate(near, vectors, texts, "ratio", "max")
    assert record["plants"] == {"given": 100, "repeated": 0, "in_the_sides": 0, "used": 100}
    assert record["translations"][0] <= 150 <= record["translations"][2]
    chosen = choose(record["curve"], precision=0.9)
    assert chosen is not None
    precision, recall = truth(chosen_pairs(near, "ratio", "max"), left, right, chosen["threshold"], 150)
    assert chosen["precision"][0] <= precision <= chosen["precision"][2]
    assert chosen["recall"][0] <= recall <= chosen["recall"][2]
    assert asked_threshold(record, 0.9, None, tmp_path) == chosen["threshold"]
    assert asked_threshold(record, None, 0.3, tmp_path) > asked_threshold(record, None, 0.6, tmp_path)
    with pytest.raises(InputError, match=r" 0\.9999; .* 0\.\d+"):
        asked_threshold(record, None, 0.9999, tmp_path)
    told = "\n".join(calibration_lines(record, 0.9, chosen["threshold"]))
    assert f"expected for {chosen['pairs']:,} pairs with score ≥ {chosen['threshold']:.4f}: precision 0.9" in told
    assert "100 plants are too few to tell a precision of 0.9 from" in told
    assert "WARNING" not in told


def test_few_plants_among_many_sentences_say_what_they_cannot_tell():
    row = {"threshold": 1.1, "pairs": 10_000, "precision": [0.7, 0.99, 1.0], "recall": [0.5, 0.6, 0.7]}
    plants = {"given": 1000, "used": 1000, "repeated": 0, "in_the_sides": 0}
    record = {
        "plants": plants,
        "sides": [1_000_000, 5],
        "translations": [9, 10, 11],
        "unlike": {"length of the sources": 0.4},
        "curve": [row],
    }
    told = "\n".join(calibration_lines(record, None, None))
    # Three false finds among a thousand plants would be 3,000 among a million sentences, of 10,000 pairs.
    assert "without a false find still allow a precision as low as 0.700; for 0.99, use 30,000 plants or more" in told
    assert "WARNING: the plants are a different kind of text from the sides: length of the sources (distance 0.40)" in told


def test_pairs_that_would_tell_nothing_are_left_out():
    def table(texts):
        return pa.table({"text_id": [str(line) for line in texts], "lang": ["x"] * len(texts), "text": list(texts.values())})

    source = table({1: "a", 2: "b", 3: "a", 4: "c", 6: "e"})  # line 5 of the source, line 6 of the target are empty
    target = table({1: "A", 2: "B", 3: "C", 4: "D", 5: "E"})
    (left, right), counts = usable((source, target), (pa.array(["x", "b"]), pa.array(["y"])))
    assert (left.tolist(), right.tolist()) == ([0, 3], [0, 3])
    assert counts == {"given": 4, "repeated": 1, "in_the_sides": 1, "used": 2}


def test_plants_are_compared_in_the_state_of_the_sides_sentences():
    x, y, _, _, given = sides(3, plants=100)
    found = hide(neighbours(x, y, 4), given, "ratio", "max")
    for side in ("source", "target"):
        lone, paired = getattr(found, f"near_{side}"), getattr(found, f"paired_near_{side}")
        assert paired.mean() > lone.mean()  # the translation took the place of the nearest of the others
        assert np.array_equal(found.neighbourhood(side, 0.0), lone)
        assert np.array_equal(found.neighbourhood(side, 1.0), paired)
        mixed, other = found.neighbourhood(side, 0.3), lone != paired
        assert (mixed == paired)[other].sum() <= 30 <= (mixed == paired).sum()
        assert (mixed == lone)[other].sum() <= 70 <= (mixed == lone).sum()


def test_too_few_plants_are_refused():
    x, y, _, _, given = sides(2, plants=49)
    with pytest.raises(InputError, match=r"calibration: .* 49 .* 50 "):
        hide(neighbours(x, y, 4), given, "ratio", "max")


def test_plants_of_another_kind_are_named():
    rng = np.random.default_rng(0)
    assert distance(np.array([1.0, 2.0, 3.0]), np.array([2.5, 3.5])) == pytest.approx(2 / 3)  # two of three lie below 2.5, none of two
    own, alike, other = rng.normal(0, 1, 1000), rng.normal(0, 1, 200), rng.normal(1, 1, 200)
    assert list(unlike({"length": (own, other), "neighbourhood": (own, alike)})) == ["length"]
    assert unlike({"length": (own, other[:10])}) == {}  # ten say nothing
