"""BUCC protocols: deduplication, thresholds and their transfer, MTEB's scores, against examples worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from build_sets import build, matrix, with_cosines
from hypothesis import given, settings
from hypothesis import strategies as st
from resampled import draws_of
from sklearn.metrics import f1_score

from crosslign.errors import InputError
from crosslign.mining import knn
from crosslign.tasks.data import ONE_THREAD, Machine
from crosslign.tasks.measures import Bootstrap, centred, interval, nearest_item_scores, resampled_item_scores
from crosslign.tasks.score import score, score_with_resamples
from crosslign.tasks.scorers import _mined
from crosslign.tasks.scorers._mined import Split

TASK = {
    "scorer": "bitext_mining",
    "texts": {"dev": "a", "test": "b"},
    "protocols": ["xtreme", "train_oracle", "sample_oracle", "mteb"],
    "k": 1,
    "margin": "absolute",
    "main": {"protocol": "xtreme", "metric": "f1", "subset": "avg"},
    "averages": {"avg": ["de-en"]},
}


def value(records, metric, protocol, subset="de-en"):
    (record,) = [r for r in records if (r.subset, r.metric, r.protocol) == (subset, metric, protocol)]
    return record


GOLDEN_SCORES = (1.2, 1.1, 1.0)
"""Worked out by hand; halved, they are cosines."""
METRICS = ("f1", "precision", "recall", "recall_cap", "extracted")
BOTH_TYPES = pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-6)])


def repeated(dtype, right=1):
    """The text "two" occurs twice among the sources, as items 1 and 2; `right` is the one that gold names."""
    evaluation = build({"de-en": (["one", "two", "two", "three"], ["ONE", "TWO", "THREE"], [(0, 0), (right, 1), (3, 2)])})
    sides = with_cosines(np.diag(GOLDEN_SCORES) / 2)
    names = [("xx", name) for name in ("one", "two", "three")], [("en", name) for name in ("ONE", "TWO", "THREE")]
    vectors = {name: row for side, rows in zip(names, sides, strict=True) for name, row in zip(side, rows, strict=True)}
    return evaluation, matrix(evaluation, vectors, dtype)


def mined(evaluation, vectors, **options):
    only = {**TASK, "texts": {"dev": "a"}, "protocols": ["sample_oracle"], "main": {**TASK["main"], "protocol": "sample_oracle"}}
    records = score("bucc", {**only, **options}, {"dev": vectors}, {"dev": evaluation})
    return {metric: value(records, metric, "sample_oracle").value for metric in METRICS}, records


@BOTH_TYPES
def test_text_and_id_dedup(dtype, tolerance):
    by_text, _ = mined(*repeated(dtype), dedup="text")
    assert by_text == pytest.approx({"f1": 0.8, "precision": 1, "recall": 2 / 3, "recall_cap": 2 / 3, "extracted": 2}, abs=tolerance)
    by_id, records = mined(*repeated(dtype), dedup="id")
    assert by_id == {"f1": 1, "precision": 1, "recall": 1, "recall_cap": 1, "extracted": 3}
    # The lowest score that is extracted is that of three and THREE, the last pair of all.
    assert 2 * value(records, "f1", "sample_oracle").threshold == pytest.approx(1.0, abs=tolerance)
    # The default of this protocol is by id.
    assert mined(*repeated(dtype))[1] == records


@BOTH_TYPES
def test_by_id_the_tie_goes_to_the_lower_index(dtype, tolerance):
    found, _ = mined(*repeated(dtype, right=2))
    assert found == pytest.approx({"f1": 2 / 3, "precision": 2 / 3, "recall": 2 / 3, "recall_cap": 1, "extracted": 3}, abs=tolerance)


def diagonal(names, cosines, links):
    """Sources and targets that meet one to one with these cosines, and are orthogonal otherwise."""
    left, right = with_cosines(np.diag(cosines))
    evaluation = build({"de-en": ([f"s{n}" for n in names], [f"t{n}" for n in names], links)})
    vectors = {("xx", f"s{n}"): row for n, row in zip(names, left, strict=True)} | {
        ("en", f"t{n}"): row for n, row in zip(names, right, strict=True)
    }
    return evaluation, matrix(evaluation, vectors)


def transfer():
    """The example of the threshold with scores divided by two, so that they are cosines."""
    # The gold pair d4 crosses two sentences that mining never puts together.
    dev = diagonal("12x34", [0.6, 0.55, 0.525, 0.5, 0.1], [(0, 0), (1, 1), (4, 3)])
    test = diagonal("12x3y4", [0.65, 0.54, 0.535, 0.51, 0.45, 0.05], [(0, 0), (1, 1), (3, 3), (5, 2)])
    return {"dev": dev[0], "test": test[0]}, {"dev": dev[1], "test": test[1]}


def test_threshold_of_dev_applied_to_test():
    sets, outputs = transfer()
    records = score("bucc", TASK, outputs, sets)
    found = {metric: value(records, metric, "xtreme").value for metric in ("extracted", "precision", "recall", "f1")}
    assert found == pytest.approx({"extracted": 2, "precision": 1, "recall": 0.5, "f1": 0.66666667})
    main = value(records, "f1", "xtreme")
    assert (main.threshold, main.threshold_from, main.n_items) == (pytest.approx(1.075 / 2, abs=1e-6), "dev", 4)
    assert [r.subset for r in records if r.main] == ["avg"]
    oracle = value(records, "f1", "train_oracle")
    assert (oracle.value, oracle.threshold, oracle.threshold_from) == (pytest.approx(0.75), pytest.approx(0.48, abs=1e-6), "same_gold")
    assert value(records, "extracted", "train_oracle").value == 4
    sample = value(records, "f1", "sample_oracle")
    assert (sample.value, sample.threshold) == (pytest.approx(0.8), pytest.approx(1.075 / 2, abs=1e-6))
    assert value(records, "accuracy", "mteb").value == pytest.approx(3 / 4)
    assert value(records, "accuracy", "mteb").threshold is None


def test_roles_may_be_called_as_in_bucc():
    sets, outputs = transfer()
    task = {**TASK, "texts": {"sample": "a", "training": "b"}}
    renamed = score(
        "bucc", task, {"sample": outputs["dev"], "training": outputs["test"]}, {"sample": sets["dev"], "training": sets["test"]}
    )
    assert renamed == score("bucc", TASK, outputs, sets)


def test_candidates_are_searched_once_for_all_protocols(monkeypatch):
    sets, outputs = transfer()
    searches = []
    monkeypatch.setattr(_mined, "neighbours", lambda *args, **kwargs: searches.append(1) or knn.neighbours(*args, **kwargs))
    score("bucc", TASK, outputs, sets)
    assert len(searches) == 2
    evaluation, vectors = repeated(np.float32)
    score("bucc", TASK, {"dev": vectors, "test": vectors}, {"dev": evaluation, "test": evaluation})
    # Repeated sentences are searched once, too: the neighbours by id follow from those of the distinct sentences.
    assert len(searches) == 4


@given(st.data())
@settings(max_examples=150)
def test_neighbours_of_items_are_those_of_a_search_among_all_items(data):
    """Few directions and few texts: many equal sentences, and many equal cosines between others."""
    vectors = np.array(data.draw(st.lists(st.sampled_from([(1, 0), (0, 1), (1, 1), (3, 4), (4, 3)]), min_size=2, max_size=8)), np.float32)
    sides = [np.array(data.draw(st.lists(st.integers(0, len(vectors) - 1), min_size=1, max_size=12))) for _ in range(2)]
    k = data.draw(st.integers(1, 5))
    split = Split(*sides, np.empty(0, np.int64), np.empty(0, np.int64))
    whole = SimpleNamespace(matrix=vectors)
    found = _mined.of_items(_mined.search(whole, split, k, ONE_THREAD, ""), split, k)
    expected = knn.neighbours(vectors, vectors, k, source_rows=sides[0], target_rows=sides[1])
    for name in ("forward_indices", "forward_scores", "backward_indices", "backward_scores"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def test_a_search_keeps_its_state_in_a_folder_of_its_own(tmp_path, monkeypatch):
    evaluation, vectors = repeated(np.float32)
    seen = []
    monkeypatch.setattr(_mined, "neighbours", lambda *args, state, **kwargs: seen.append(state.folder) or knn.neighbours(*args, **kwargs))
    both = {"dev": vectors, "test": vectors}, {"dev": evaluation, "test": evaluation}
    records = score("bucc", TASK, *both, machine=Machine(threads=2, work=tmp_path))
    assert sorted(seen) == [tmp_path / "de-en-dev", tmp_path / "de-en-test"]
    assert records == score("bucc", TASK, *both, machine=Machine(threads=1, work=tmp_path))


def test_a_missing_set_skips_its_protocols_with_the_reason():
    sets, outputs = transfer()
    task = {**TASK, "texts": {"test": "b"}, "main": {**TASK["main"], "protocol": "train_oracle"}}
    records = score("bucc", task, {"test": outputs["test"]}, {"test": sets["test"]})
    assert value(records, "f1", "train_oracle").value == pytest.approx(0.75)
    for protocol in ("xtreme", "sample_oracle"):
        record = value(records, "f1", protocol)
        assert (record.value, record.status) == (None, "undefined")
        assert "dev or sample" in record.reason
        assert "dev or sample" in value(records, "f1", protocol, "avg").reason


def test_official_extracts_with_the_training_threshold():
    sets, outputs = transfer()
    unlabelled = build({"de-en": (["s1", "s2", "sx"], ["t1", "t2", "tx"], [])})
    left, right = with_cosines(np.diag([0.6, 0.5, 0.2]))
    vectors = {("xx", n): row for n, row in zip(("s1", "s2", "sx"), left, strict=True)} | {
        ("en", n): row for n, row in zip(("t1", "t2", "tx"), right, strict=True)
    }
    task = {**TASK, "texts": {**TASK["texts"], "official": "c"}, "protocols": ["xtreme", "official"]}
    records = score("bucc", task, {**outputs, "official": matrix(unlabelled, vectors)}, {**sets, "official": unlabelled})
    record = value(records, "extracted", "official")
    # The threshold of the training gold is 0.48.
    assert (record.value, record.threshold_from, record.n_items) == (2, "train", 3)
    assert not [r for r in records if r.protocol == "official" and r.metric == "f1"]


def test_official_leaves_out_repeated_sentences_as_training_does():
    evaluation, vectors = repeated(np.float32)
    task = {**TASK, "texts": {"test": "b", "official": "c"}, "protocols": ["train_oracle", "official"]}
    task["main"] = {**TASK["main"], "protocol": "train_oracle"}
    outputs, sets = {"test": vectors, "official": vectors}, {"test": evaluation, "official": replace(evaluation, gold=evaluation.gold[:0])}
    for dedup, extracted in (({}, 2), ({"dedup": "id"}, 3)):
        assert value(score("bucc", {**task, **dedup}, outputs, sets), "extracted", "official").value == extracted


def test_empty_sides_and_nothing_right():
    sets, outputs = transfer()
    empty = build({"de-en": ([], ["a"], [])})
    records = score("bucc", TASK, {**outputs, "dev": np.ones((1, 3))}, {**sets, "dev": empty})
    assert value(records, "f1", "xtreme").reason == "one side of role dev is empty"
    wrong = diagonal("12", [0.6, 0.5], [(0, 1), (1, 0)])
    records = score("bucc", TASK, {"dev": wrong[1], "test": outputs["test"]}, {"dev": wrong[0], "test": sets["test"]})
    for metric in ("f1", "precision", "recall", "extracted"):
        record = value(records, metric, "xtreme")
        assert (record.value, record.status, record.threshold) == (0.0, "ok", None)


def test_unknown_gold_is_refused():
    sets, outputs = transfer()
    broken = build({"de-en": (["s1"], ["t1"], [(0, 5)])})
    with pytest.raises(InputError, match=r"'dev', subset 'de-en', gold line 1: .*'target5'"):
        score("bucc", TASK, {**outputs, "dev": np.eye(2)}, {**sets, "dev": broken})


def test_intervals_resample_sources():
    rng = np.random.default_rng(2)
    n = 300
    names = [f"{i}" for i in range(n)]
    evaluation = build({"de-en": ([f"s{i}" for i in names], [f"t{i}" for i in names], [(i, i) for i in range(n)])})
    base = rng.standard_normal((n, 12))
    vectors = {("xx", f"s{i}"): row for i, row in zip(names, base, strict=True)}
    vectors |= {("en", f"t{i}"): row + 0.8 * rng.standard_normal(12) for i, row in zip(names, base, strict=True)}
    task = {
        **TASK,
        "texts": {"test": "a"},
        "protocols": ["train_oracle"],
        "main": {**TASK["main"], "protocol": "train_oracle"},
        "k": 4,
        "margin": "ratio",
    }
    record = value(score("bucc", task, {"test": matrix(evaluation, vectors)}, {"test": evaluation}), "recall", "train_oracle")
    assert record.ci_low < record.value < record.ci_high
    # Every source has one gold pair, so that recall is a share of 300 sources.
    assert record.ci_high - record.ci_low == pytest.approx(2 * 1.96 * np.sqrt(record.value * (1 - record.value) / n), rel=0.15)


def test_resamples_count_gold_extracted_and_right_pairs_of_the_drawn_sources():
    """Source i is mined with target i at a cosine of its own; two of those above the threshold are wrong, one gold pair is never mined."""
    cosines = [0.6, 0.58, 0.56, 0.54, 0.52, 0.5, 0.48, 0.1]
    gold = [0, 1, 3, 4, 6, 7]
    evaluation, vectors = diagonal("abcdefgh", cosines, [(i, i if i < 7 else 2) for i in gold])
    task = {**TASK, "texts": {"test": "a"}, "protocols": ["train_oracle"], "resamples": 60}
    task["main"] = {**TASK["main"], "protocol": "train_oracle"}
    scored = score_with_resamples("bucc", task, {"test": vectors}, {"test": evaluation})
    found = {record.metric: values for record, values in scored if record.subset == "de-en"}
    (record,) = [record for record, _ in scored if (record.subset, record.metric) == ("de-en", "f1")]
    assert (record.value, record.threshold) == (pytest.approx(2 * 5 / (7 + 6)), pytest.approx(0.29, abs=1e-6))
    expected = {"f1": [], "precision": [], "recall": []}
    for draw in draws_of(Bootstrap("bucc", 60, 42), 8):
        held = [i for i in draw if i in gold]
        kept = [i for i in draw if cosines[i] > 0.29]
        right = [i for i in kept if i in gold]
        expected["f1"].append(2 * len(right) / (len(held) + len(kept)))
        expected["precision"].append(len(right) / len(kept))
        expected["recall"].append(len(right) / len(held))
    for metric, values in expected.items():
        assert found[metric] == pytest.approx(values), metric
    assert found["recall_cap"] is None


def test_a_pair_at_the_training_threshold_is_extracted():
    train = diagonal("12", [0.6, 0.5], [(0, 0), (1, 1)])  # all are right: the threshold is the last score
    left, right = with_cosines(np.diag([0.5, 0.4]))
    unlabelled = build({"de-en": (["u1", "u2"], ["v1", "v2"], [])})
    vectors = {("xx", f"u{n}"): row for n, row in enumerate(left, 1)} | {("en", f"v{n}"): row for n, row in enumerate(right, 1)}
    task = {**TASK, "texts": {"test": "b", "official": "c"}, "protocols": ["train_oracle", "official"]}
    task["main"] = {**TASK["main"], "protocol": "train_oracle"}
    outputs, sets = {"test": train[1], "official": matrix(unlabelled, vectors)}, {"test": train[0], "official": unlabelled}
    assert value(score("bucc", task, outputs, sets), "extracted", "official").value == 1


def repeated_target():
    """Two is mined with TWO, which occurs twice among the targets."""
    names = ["one", "two", "three"]
    evaluation = build({"de-en": (names, ["TWO", "TWO", "ONE"], [(0, 2), (1, 0), (2, 1)])})
    vectors = {("xx", name): np.eye(3)[i] for i, name in enumerate(names)} | {("en", "ONE"): np.eye(3)[0], ("en", "TWO"): np.eye(3)[1]}
    return evaluation, matrix(evaluation, vectors)


def test_a_repeated_target_is_reached_by_no_gold_pair_and_extracted_in_none():
    found, _ = mined(*repeated_target(), dedup="text")
    assert found == pytest.approx({"f1": 1 / 2, "precision": 1, "recall": 1 / 3, "recall_cap": 1 / 3, "extracted": 1})
    found, _ = mined(*repeated_target(), dedup="id")
    assert found == pytest.approx({"f1": 4 / 5, "precision": 1, "recall": 2 / 3, "recall_cap": 1, "extracted": 2})


def test_neighbours_of_collapsed_targets_are_not_those_of_all():
    """By text the targets are two, by id three, and ONE has another number: each protocol gives what it gives alone."""
    evaluation, vectors = repeated_target()
    found = []
    for protocols in (["train_oracle", "mteb"], ["train_oracle"], ["mteb"]):
        main = {"protocol": protocols[0], "metric": "f1" if protocols[0] == "train_oracle" else "accuracy", "subset": "de-en"}
        task = {**TASK, "texts": {"test": "a"}, "protocols": protocols, "main": main, "k": 3, "margin": "ratio"}
        records = score("bucc", task, {"test": vectors}, {"test": evaluation})
        found.append({(r.metric, r.protocol): r.value for r in records if r.subset == "de-en"})
    assert found[0] == {**found[1], **found[2]}
    assert found[2]["accuracy", "mteb"] == 2 / 3


def test_mteb_scores_of_resamples_are_those_of_the_drawn_queries():
    rng = np.random.default_rng(0)
    gold, predicted = rng.integers(0, 9, 30), rng.integers(0, 12, 30)  # several queries share a partner, some find nobody's
    bootstrap = Bootstrap("bucc", 50, 42)
    found = resampled_item_scores(gold, predicted, bootstrap)
    draws = draws_of(bootstrap, 30)
    for metric, values in found.items():
        expected = [nearest_item_scores(gold[draw], predicted[draw])[metric] for draw in draws]
        assert values == pytest.approx(expected, abs=1e-12)
    f1 = [f1_score(gold[draw], predicted[draw], average="weighted", zero_division=0) for draw in draws]
    assert found["weighted_f1"] == pytest.approx(f1, abs=1e-12)
    assert resampled_item_scores(gold, predicted, Bootstrap("bucc", 0, 42)) == {}


def test_the_interval_of_a_weighted_score_lies_around_it():
    """With one partner a query, whoever is not drawn takes wrong neighbours away from the others: resamples of F1 lie above it."""
    rng = np.random.default_rng(0)
    gold = np.arange(300)
    predicted = np.where(rng.random(300) < 0.3, gold, rng.integers(0, 60, 300))
    f1 = nearest_item_scores(gold, predicted)["weighted_f1"]
    drawn = resampled_item_scores(gold, predicted, Bootstrap("bucc", 400, 42))["weighted_f1"]
    assert np.mean(drawn) > f1 + np.std(drawn) / 4
    low, high = interval(centred(drawn, f1))
    assert low < f1 < high
    assert np.mean(centred(drawn, f1)) == pytest.approx(f1)


def test_golden_mteb_scores():
    gold = np.array([2, 0, 4, 3])
    found = nearest_item_scores(gold, np.array([2, 0, 1, 3]))
    assert (found["accuracy"], found["weighted_f1"]) == pytest.approx((0.75, 0.75))
    found = nearest_item_scores(gold, np.array([2, 0, 2, 3]))
    assert (found["accuracy"], found["weighted_f1"], found["weighted_precision"]) == pytest.approx((0.75, 2 / 3, 0.625))
    assert found["weighted_recall"] == pytest.approx(0.75)


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), max_size=30)


@settings(max_examples=100)
@given(gold=PAIRS.map(lambda pairs: list(dict.fromkeys(pairs))), asked=PAIRS)
def test_gold_pairs_are_found_however_many_a_sentence_has(gold, asked):
    gold_pairs, asked_pairs = (np.array(pairs, np.int64).reshape(-1, 2).T for pairs in (gold, asked))
    split = Split(np.arange(6), np.arange(8), *gold_pairs)
    assert split.is_gold(*asked_pairs).tolist() == [pair in gold for pair in asked]
