"""AP, MRR and purity against examples worked out by hand, and the scorers around them."""

from __future__ import annotations

import numpy as np
import pytest
from build_sets import build, matrix
from hypothesis import given
from hypothesis import strategies as st
from resampled import draws_of
from sklearn.linear_model import LogisticRegression

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError
from crosslign.tasks.measures import Bootstrap
from crosslign.tasks.score import score, score_with_resamples
from crosslign.tasks.scorers._labels import few_shot_draws, first_of_each
from crosslign.tasks.scorers.average_precision import judge_rankings
from crosslign.tasks.scorers.clustering_purity import purities, resampled_purities


def ap(relevant, ranking, k):
    links = np.array(sorted(relevant))
    return judge_rankings(np.array([ranking]), np.zeros(len(links), dtype=np.int64), links, k)[0][0]


def test_golden_average_precision():
    assert ap({2, 7, 9}, [7, 1, 2, 4, 9], 5) == pytest.approx(0.7555555556)
    assert ap({2, 7, 9}, [7, 1, 2, 4, 9], 3) == pytest.approx(0.5555555556)
    assert ap({2, 7}, [7, 7, 2, 1, 0], 5) == pytest.approx(0.8333333333)
    assert ap({8}, [7, 1, 2], 3) == 0


def test_golden_reciprocal_rank():
    ranking = np.tile(np.arange(1, 25), (4, 1))
    _, reciprocal = judge_rankings(ranking, np.arange(4), np.array([1, 3, 99, 20]), 20)
    assert reciprocal.mean() == pytest.approx(0.3458333333)
    assert judge_rankings(ranking, np.arange(4), np.array([1, 3, 99, 21]), 20)[1][3] == 0


def slow_ap(ranking, relevant, k):
    hits, total, seen = 0, 0.0, set()
    for rank, candidate in enumerate(ranking[:k], 1):
        if candidate in relevant and candidate not in seen:
            hits += 1
            total += hits / rank
        seen.add(candidate)
    return total / min(len(relevant), k)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.sets(st.integers(0, 12), min_size=1, max_size=6), st.integers(1, 8))
def test_average_precision_equals_a_loop(ranking, relevant, k):
    assert ap(relevant, ranking, k) == pytest.approx(slow_ap(ranking, relevant, k))


MAP_TASK = {
    "scorer": "average_precision",
    "texts": {"queries": "q", "candidates": "c"},
    "cutoff": 3,
    "main": {"metric": "map_at_3", "subset": "avg"},
    "averages": {"avg": "all"},
}


def test_queries_of_each_language_search_one_pool():
    queries, candidates = EvaluationBuilder("q"), EvaluationBuilder("c")
    for lang in ("de", "fr"):
        candidates.item(f"{lang}-right", lang, "candidate", lang, f"{lang} right")
        candidates.item(f"{lang}-wrong", lang, "candidate", lang, f"{lang} wrong")
        queries.item(f"{lang}-q", lang, "query", lang, f"{lang} q")
        for answer in ("de-right", "fr-right"):
            queries.link(lang, f"{lang}-q", answer)
    sets = {"queries": queries.build(), "candidates": candidates.build()}
    pool = matrix(
        sets["candidates"],
        {
            ("de", "de right"): [1, 0, 0],
            ("de", "de wrong"): [0.9, 0.4, 0],
            ("fr", "fr right"): [0.7, 0.7, 0],
            ("fr", "fr wrong"): [0, 0, 1],
        },
    )
    asked = matrix(sets["queries"], {("de", "de q"): [1, 0, 0], ("fr", "fr q"): [0.1, 0, 1]})
    records = score("lareqa", MAP_TASK, {"queries": asked, "candidates": pool}, sets)
    found = {(r.subset, r.metric): r.value for r in records}
    # de: right, wrong, right; fr: wrong, right (de), wrong (de), so its second answer stays out of the first three.
    assert found["de", "map_at_3"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["fr", "map_at_3"] == pytest.approx((1 / 2) / 2)
    assert found["avg", "map_at_3"] == pytest.approx((5 / 6 + 1 / 4) / 2)
    assert (found["de", "mrr_at_3"], found["fr", "mrr_at_3"]) == (1, 0.5)


def test_golden_purity():
    labels, clusters = np.array([0, 0, 1, 1, 1, 2, 2, 2]), np.array([0, 0, 0, 1, 1, 1, 2, 2])
    assert purities(labels, clusters) == pytest.approx((0.7777777778, 0.75))
    # Names of clusters do not matter, and empty ones do not count.
    assert purities(labels[::-1], 9 - 4 * clusters[::-1]) == pytest.approx((0.7777777778, 0.75))


def test_purities_of_resamples_are_those_of_the_drawn_items():
    rng = np.random.default_rng(1)
    labels, clusters = rng.integers(0, 4, 25), rng.integers(0, 6, 25)
    bootstrap = Bootstrap("tnews", 40, 42)
    expected = [purities(labels[draw], clusters[draw]) for draw in draws_of(bootstrap, 25)]
    assert resampled_purities(labels, clusters, bootstrap) == pytest.approx(np.array(expected))


def labelled(counts, split="test", lang="zh"):
    builder = EvaluationBuilder("tnews")
    for label, count in enumerate(counts):
        for number in range(count):
            builder.item(f"{split}{label}-{number}", lang, "sentence", lang, f"{split} {label} {number}", split=split, label=[label])
    return builder.build()


def test_purity_of_separable_and_of_random_clusters():
    evaluation = labelled([30, 30, 30])
    rng = np.random.default_rng(0)
    vectors = np.repeat(np.eye(3), 30, 0) * 10 + rng.standard_normal((90, 3))
    task = {"scorer": "clustering_purity", "texts": {"test": "t"}, "main": {"metric": "mean_cluster_purity", "subset": "zh"}}
    records = score("tnews", task, {"test": vectors}, {"test": evaluation})
    found = {(r.metric, r.protocol): r.value for r in records}
    assert found["mean_cluster_purity", ""] == found["purity", ""] == 1
    assert 1 / 3 < found["purity", "random"] < 0.6
    # All 90 items are in a cluster of their class: the interval is the exact binomial one.
    whole = next(r for r in records if r.metric == "purity" and not r.protocol)
    assert (whole.ci_low, whole.ci_high) == (pytest.approx(0.025 ** (1 / 90)), 1)
    drawn = next(r for r in records if r.metric == "purity" and r.protocol == "random")
    assert drawn.ci_low < drawn.ci_high
    assert score("tnews", {**task, "resamples": 0}, {"test": vectors}, {"test": evaluation})[0].ci_low is None
    few = score("tnews", {**task, "k": 100}, {"test": vectors}, {"test": evaluation})
    assert few[0].reason == "90 items are fewer than 100 clusters"


def test_fewer_different_vectors_than_clusters_are_said_in_one_line(caplog, recwarn):
    """Two directions, three classes of four items: each cluster of six holds one class whole and half of the second."""
    vectors = np.repeat(np.eye(3, dtype=np.float32)[:2], 6, 0)
    task = {"scorer": "clustering_purity", "texts": {"test": "t"}, "main": {"metric": "purity", "subset": "zh"}, "resamples": 0}
    with caplog.at_level("INFO"):
        records = score("tnews", task, {"test": vectors}, {"test": labelled([4, 4, 4])})
    assert [record.value for record in records if not record.protocol] == pytest.approx([4 / 6, 8 / 12])
    assert ["5 of the k-means" in record.getMessage() for record in caplog.records] == [True]
    assert not recwarn.list


def test_clusters_are_those_of_directions():
    """Lengths have no part in them: powers of two, so that unit vectors are the same to the bit."""
    evaluation, rng = labelled([30, 30, 30]), np.random.default_rng(0)
    vectors = np.repeat(np.eye(3), 30, 0) + 0.8 * rng.standard_normal((90, 3))
    task = {"scorer": "clustering_purity", "texts": {"test": "t"}, "main": {"metric": "purity", "subset": "zh"}}
    found = [score("tnews", task, {"test": x}, {"test": evaluation}) for x in (vectors, vectors * 2.0 ** rng.integers(0, 6, (90, 1)))]
    assert found[0] == found[1]


def test_items_without_a_class_are_refused():
    evaluation = build({"zh": (["a"], ["b"], [])})
    task = {"scorer": "clustering_purity", "texts": {"test": "t"}, "main": {"metric": "purity", "subset": "zh"}}
    with pytest.raises(InputError, match=r"task 'tnews', subset 'zh': item 'source0' .*class"):
        score("tnews", task, {"test": np.eye(2)}, {"test": evaluation})


def test_draws_shuffle_one_running_permutation_with_a_fresh_generator_each_time():
    labels = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
    running, expected = list(range(12)), []
    for _ in range(3):
        np.random.RandomState(42).shuffle(running)
        taken, drawn = {0: 0, 1: 0, 2: 0}, []
        for at in running:
            if taken[labels[at]] < 2:
                drawn.append(at)
                taken[labels[at]] += 1
        expected.append(drawn)
    assert [draw.tolist() for draw in few_shot_draws(labels, 3, 2, 42)] == expected
    assert expected[0] != expected[1]
    assert first_of_each(np.array([1, 1, 0, 1, 0]), 2).tolist() == [0, 1, 2, 4]


def test_linear_classification_of_separable_classes_and_of_noise():
    train, test = labelled([20, 25, 30], "train"), labelled([10, 10, 10], "test")
    rng = np.random.default_rng(0)
    centres = 5 * np.eye(3)
    outputs = {
        "train": np.repeat(centres, [20, 25, 30], 0) + rng.standard_normal((75, 3)),
        "test": np.repeat(centres, 10, 0) + rng.standard_normal((30, 3)),
    }
    task = {
        "scorer": "linear_classification",
        "texts": {"train": "a", "test": "b"},
        "main": {"metric": "accuracy", "subset": "avg"},
        "averages": {"avg": "all"},
    }
    (main,) = [r for r in score("mtop", task, outputs, {"train": train, "test": test}) if r.main]
    assert main.value > 0.95
    noise = {role: rng.standard_normal(x.shape) for role, x in outputs.items()}
    (main,) = [r for r in score("mtop", task, noise, {"train": train, "test": test}) if r.main]
    assert 0.1 < main.value < 0.6
    assert main.ci_low < main.value < main.ci_high


def test_linear_classification_reads_the_length_of_vectors():
    """Vectors are used as they are: these classes differ in length alone."""
    sets = {role: labelled([20, 20], role) for role in ("train", "test")}
    vectors = np.repeat([[1.0, 0.0], [3.0, 0.0]], 20, 0)
    task = {"scorer": "linear_classification", "texts": {"train": "a", "test": "b"}, "main": {"metric": "accuracy", "subset": "zh"}}
    (record,) = score("mtop", task, dict.fromkeys(sets, vectors), sets)
    assert record.value == 1


def test_classifiers_that_end_at_their_last_step_are_counted_in_one_line(caplog, recwarn):
    train, test = labelled([20, 20], "train"), labelled([5, 5], "test")
    rng = np.random.default_rng(0)
    outputs = {"train": rng.standard_normal((40, 64)), "test": rng.standard_normal((10, 64))}
    task = {
        "scorer": "linear_classification",
        "texts": {"train": "a", "test": "b"},
        "experiments": 3,
        "max_iter": 1,
        "main": {"metric": "accuracy", "subset": "avg"},
        "averages": {"avg": "all"},
    }
    with caplog.at_level("INFO"):
        score("mtop", task, outputs, {"train": train, "test": test})
    assert [record.getMessage() for record in caplog.records if "3 of the classifiers" in record.getMessage()]
    assert not recwarn.list
    caplog.clear()
    with caplog.at_level("INFO"):
        score("mtop", task | {"max_iter": 1000}, outputs, {"train": train, "test": test})
    assert not [record for record in caplog.records if "classifiers" in record.getMessage()]


@pytest.mark.parametrize(
    ("train", "test", "reason"),
    [([0, 9], [3, 3], "all training items have class 1"), ([3, 3], [], "no test items"), ([], [3, 3], "no training items")],
)
def test_linear_classification_without_two_classes_to_learn_is_undefined(train, test, reason):
    """scikit-learn refuses a single class with an error of its own."""
    builder = EvaluationBuilder("mtop")
    for split, counts in (("train", train), ("test", test)):
        for label, count in enumerate(counts):
            for number in range(count):
                builder.item(f"{split}{label}-{number}", "en", "sentence", "en", f"{split} {label} {number}", split=split, label=[label])
    evaluation = builder.build()
    task = {"scorer": "linear_classification", "texts": {"test": "a"}, "main": {"metric": "accuracy", "subset": "en"}}
    (record,) = score(
        "mtop", task, {"test": np.random.default_rng(0).standard_normal((evaluation.texts.num_rows, 3))}, {"test": evaluation}
    )
    assert (record.value, record.reason) == (None, reason)


def test_linear_classification_is_the_mean_over_few_shot_regressions():
    """As MTEB has it: each experiment fits on a few items of each class alone."""
    rng = np.random.default_rng(7)
    counts = {"train": [40, 30, 50], "test": [12, 12, 12]}
    sets = {role: labelled(numbers, role) for role, numbers in counts.items()}
    gold = {role: np.repeat(np.arange(3), numbers) for role, numbers in counts.items()}
    outputs = {role: np.eye(3)[gold[role]] + 0.7 * rng.standard_normal((len(gold[role]), 3)) for role in counts}
    task = {"scorer": "linear_classification", "texts": {"train": "a", "test": "b"}, "main": {"metric": "accuracy", "subset": "zh"}}
    (record,) = score("mtop", {**task, "experiments": 4, "samples_per_label": 3, "seed": 7}, outputs, sets)
    shares = []
    for drawn in few_shot_draws(gold["train"], 4, 3, 7):
        assert len(drawn) == 9
        model = LogisticRegression(max_iter=100, random_state=7).fit(outputs["train"][drawn], gold["train"][drawn])
        shares.append((model.predict(outputs["test"]) == gold["test"]).mean())
    assert len(set(shares)) > 1
    assert record.value == pytest.approx(np.mean(shares))


def test_purities_of_resamples_are_means_over_the_starts():
    evaluation = labelled([15, 12])
    task = {
        "scorer": "clustering_purity",
        "texts": {"test": "t"},
        "main": {"metric": "purity", "subset": "zh"},
        "seeds": [3, 4],
        "resamples": 25,
    }
    scored = score_with_resamples("tnews", task, {"test": np.random.default_rng(0).standard_normal((27, 4))}, {"test": evaluation})
    record, values = next((record, values) for record, values in scored if (record.metric, record.protocol) == ("purity", "random"))
    gold = np.repeat([0, 1], [15, 12])
    assigned = [np.random.default_rng(seed).integers(0, 2, 27) for seed in (3, 4)]
    assert record.value == pytest.approx(np.mean([purities(gold, one)[1] for one in assigned]))
    draws = draws_of(Bootstrap("tnews", 25, 42), 27)
    means = np.array([np.mean([purities(gold[draw], one[draw])[1] for one in assigned]) for draw in draws])
    assert values == pytest.approx(np.clip(means + record.value - means.mean(), 0, 1))


def test_language_probe_reads_a_small_dimension_beside_a_large_one():
    """Vectors are standardised: what tells the languages apart is a ten-thousandth of the rest."""
    builder, rng = EvaluationBuilder("both"), np.random.default_rng(0)
    for split, count in (("train", 60), ("test", 40)):
        for lang in ("en", "de"):
            for number in range(count):
                builder.item(f"{split} {lang}{number}", lang, "sentence", lang, f"{split} {lang} {number}", split=split)
    evaluation = builder.build()
    langs = evaluation.texts["lang"].to_pylist()
    vectors = np.stack([[1e-4 * (lang == "en") for lang in langs], rng.standard_normal(len(langs))], 1)
    vectors[-1, 0] = -1e4  # a German sentence that is asked, far out on its side: the training sentences alone set the measure
    task = {
        "scorer": "language_probe",
        "texts": {"test": "a"},
        "languages": {"one": ["en", "de"]},
        "main": {"metric": "accuracy", "subset": "one"},
    }
    assert {r.value for r in score("probe", task, {"test": vectors}, {"test": evaluation})} == {1.0}


def test_language_probe():
    def sentences(role, counts):
        builder = EvaluationBuilder(role)
        for lang, count in counts.items():
            for number in range(count):
                builder.item(f"{lang}{number}", lang, "sentence", lang, f"{role} {lang} {number}")
                builder.item(f"{lang}{number} again", lang, "sentence", lang, f"{role} {lang} {number}")
        return builder.build()

    sets = {"train": sentences("train", {"en": 30, "de": 40, "fr": 25}), "test": sentences("test", {"en": 10, "de": 20, "fr": 15})}
    rng = np.random.default_rng(0)
    outputs = {}
    for role, evaluation in sets.items():
        langs = evaluation.texts["lang"].to_pylist()
        outputs[role] = np.array([[lang == "en", 0, 0] for lang in langs]) * 1e3 + rng.standard_normal((len(langs), 3))
    task = {
        "scorer": "language_probe",
        "texts": {"train": "a", "test": "b"},
        "languages": {"one": ["en", "de"], "two": ["de", "fr"], "gone": ["en", "hi"]},
        "main": {"metric": "accuracy", "subset": "one"},
    }
    found = {(r.subset, r.protocol): r for r in score("probe", task, outputs, sets)}
    assert found["one", ""].value == found["one", "linear_svm"].value == 1
    assert found["one", ""].n_items == 20
    assert (found["two", ""].n_items, found["two", ""].value) == (30, pytest.approx(0.5, abs=0.25))
    assert found["gone", ""].status == "undefined"


def test_language_probe_draws_what_was_sampled_together_at_once():
    """All sentences of one premise are told rightly, all of the other wrongly: a resample has the share of either, or of both."""
    builder = EvaluationBuilder("both")
    for split, count in (("train", 12), ("test", 6)):
        for lang in ("en", "de"):
            for number in range(count):
                premise = f"{number % 2}" if split == "test" else None
                builder.item(f"{split} {lang}{number}", lang, "sentence", lang, f"{split} {lang} {number}", split=split, cluster=premise)
    evaluation = builder.build()
    vectors = np.array(
        [
            [(row["lang"] == "en") != (row["text"].startswith("test") and int(row["text"][-1]) % 2 == 1)]
            for row in evaluation.texts.to_pylist()
        ],
        dtype=float,
    )
    task = {
        "scorer": "language_probe",
        "texts": {"test": "a"},
        "languages": {"one": ["en", "de"]},
        "main": {"metric": "accuracy", "subset": "one"},
    }
    (record, values), _ = score_with_resamples("probe", task, {"test": vectors}, {"test": evaluation})
    assert record.value == 0.5
    assert set(values.tolist()) == {0.0, 0.5, 1.0}


def test_language_probe_takes_the_splits_of_a_single_set():
    builder = EvaluationBuilder("both")
    for split, count in (("train", 12), ("test", 5)):
        for lang in ("en", "de"):
            for number in range(count):
                builder.item(f"{split} {lang}{number}", lang, "sentence", lang, f"{split} {lang} {number}", split=split)
    evaluation = builder.build()
    rows = evaluation.texts.to_pylist()
    vectors = np.array(
        [[(row["lang"] == "en") != row["text"].startswith("test"), number % 3] for number, row in enumerate(rows)], dtype=float
    )
    task = {
        "scorer": "language_probe",
        "texts": {"test": "a"},
        "languages": {"one": ["en", "de"]},
        "main": {"metric": "accuracy", "subset": "one"},
    }
    (main,) = [r for r in score("probe", task, {"test": vectors}, {"test": evaluation}) if r.main]
    assert (main.n_items, main.value) == (10, 0)  # test sentences lie on the other language's side: they taught nothing
