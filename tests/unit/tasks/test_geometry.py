"""Geometry of an embedding space against examples worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from resampled import draws_of
from sklearn.metrics import calinski_harabasz_score

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError
from crosslign.tasks.data import members
from crosslign.tasks.measures import Bootstrap
from crosslign.tasks.score import score, score_with_resamples
from crosslign.tasks.scorers._gaussians import diagonal_kl, full_kl, kl_gradients, mean_symmetric
from crosslign.tasks.scorers.geometry import calinski_harabasz, ratio_range

TASK = {"scorer": "geometry", "texts": {"test": "flores"}, "languages": {"all": "all"}, "main": {"metric": "isotropy", "subset": "all"}}


def sentences(langs, n):
    builder = EvaluationBuilder("flores")
    for lang in langs:
        for number in range(n):
            builder.item(f"{number}", lang, "sentence", lang, f"{lang} {number}", group=f"{number}")
    return builder.build()


def run(vectors, langs, n, **options):
    evaluation = sentences(langs, n)
    return {(r.subset, r.metric): r for r in score("geometry", {**TASK, **options}, {"test": vectors}, {"test": evaluation})}


TYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@TYPES
def test_golden_diagonal_kl(dtype):
    divergences = diagonal_kl(np.array([[0, 0], [1, -0.5]], dtype), np.array([[1, 0.25], [0.5, 0.5]], dtype))
    assert (divergences[0, 1], divergences[1, 0]) == pytest.approx((1.5, 1.25))
    assert divergences.diagonal() == pytest.approx([0, 0])
    assert mean_symmetric(divergences) == pytest.approx(1.375)
    assert mean_symmetric(divergences) / 2 == pytest.approx(0.6875)


@TYPES
def test_golden_full_kl(dtype):
    means = np.array([[0, 0], [0.5, 1]], dtype)
    spreads = [np.array([[1, 0.3], [0.3, 0.5]], dtype), np.array([[0.8, -0.1], [-0.1, 0.6]], dtype)]
    tolerance = 1e-9 if dtype is np.float64 else 1e-6
    divergences = full_kl(means, spreads)
    assert (divergences[0, 1], divergences[1, 0]) == pytest.approx((1.3129686186, 1.2304927203), abs=tolerance)
    divergences = full_kl(means, [3001 * spread for spread in spreads])
    assert (divergences[0, 1], divergences[1, 0]) == pytest.approx((0.1963195583, 0.2247304134), abs=tolerance)


@TYPES
def test_golden_calinski_harabasz(dtype):
    points, clusters = np.array([[0, 0], [0, 2], [4, 0], [4, 2], [10, 1], [10, 3]], dtype), np.array([0, 0, 1, 1, 2, 2])
    once = np.ones((1, 3))
    (index,) = calinski_harabasz([points], [clusters], once)
    assert index == pytest.approx(25.6666666667)
    centres = np.stack([points[clusters == number].mean(0) for number in range(3)])
    between = 2 * ((centres - points.mean(0)) ** 2).sum()
    within, literal = ((points - centres[clusters]) ** 2).sum(), sum(((points - centre) ** 2).sum() for centre in centres)
    assert (between, within) == pytest.approx((102.6666666667, 6))
    assert index * (3 - 1) / (6 - 3) == pytest.approx(between / within) == pytest.approx(17.1111111111)
    # Equation 17 as printed sums over all points for each cluster: values that the paper's table cannot hold.
    assert between / literal == pytest.approx(0.1619348055)
    split = calinski_harabasz([points[::2], points[1::2]], [np.array([0, 1, 2]), np.array([0, 1, 2])], once)
    assert split == pytest.approx(25.6666666667)
    assert np.isnan(calinski_harabasz([points], [np.zeros(6, dtype=int)], np.ones((1, 1))))


@TYPES
def test_golden_isotropy_and_its_range(dtype):
    found = run(np.array([[3, 4], [4, 3], [1, 0], [3, 4], [4, 3], [1, 0]], dtype), ["aa", "bb"], 3)
    # Both languages hold the golden vectors: every Z doubles, and the ratio stays.
    assert found["all", "isotropy"].value == pytest.approx(0.4317638089)
    assert found["all", "isotropy_low"].value == pytest.approx(0.3634291063)
    assert found["all", "isotropy_high"].value == pytest.approx(0.4317638089)


@TYPES
def test_golden_ratios_of_all_signs(dtype):
    unit = np.array([[0.6, 0.8], [0.8, 0.6], [1, 0]], dtype)
    values, directions = np.linalg.eigh(unit.T @ unit)
    assert values == pytest.approx([0.4175952698, 2.5824047302])
    plus, minus = np.exp(unit @ directions).sum(0), np.exp(-unit @ directions).sum(0)
    every = sorted(min(a, b) / max(a, b) for a in (plus[0], minus[0]) for b in (plus[1], minus[1]))
    assert every == pytest.approx([0.3634291063, 0.3778761454, 0.4152565255, 0.4317638089])
    assert ratio_range(plus, minus) == pytest.approx((every[0], every[-1]))


def test_ratio_range_equals_trying_all_signs():
    rng = np.random.default_rng(0)
    for d in (1, 2, 5):
        plus, minus = np.exp(rng.standard_normal((2, 50, d)))
        minus[::3, 0] = plus[::3, -1]
        tried = np.stack([np.where(np.array(signs) == 0, plus, minus) for signs in np.ndindex(*(2,) * d)])
        ratios = tried.min(2) / tried.max(2)
        low, high = ratio_range(plus, minus)
        assert low == pytest.approx(ratios.min(0))
        assert high == pytest.approx(ratios.max(0))


@pytest.mark.parametrize("member", [0, 2])
def test_gradients_of_a_divergence_are_those_of_small_steps(member):
    rng = np.random.default_rng(3)
    d, means = 3, rng.standard_normal((3, 3))
    spreads = [root @ root.T + np.eye(d) for root in rng.standard_normal((3, d, d))]
    by_mean, by_spread = list(kl_gradients(means, spreads))[member]
    for direction in np.eye(d):
        moved = [np.where(np.arange(3)[:, None] == member, means + sign * 1e-5 * direction, means) for sign in (1, -1)]
        up, down = (mean_symmetric(full_kl(one, spreads)) for one in moved)
        assert (up - down) / 2e-5 == pytest.approx(by_mean @ direction, abs=1e-7)
    for i, j in ((0, 0), (0, 2), (1, 2)):
        step = np.zeros((d, d))
        step[i, j] = step[j, i] = 1e-5
        changed = [[*spreads[:member], spreads[member] + sign * step, *spreads[member + 1 :]] for sign in (1, -1)]
        up, down = (mean_symmetric(full_kl(means, one)) for one in changed)
        assert (up - down) / 2 == pytest.approx((by_spread * step).sum(), abs=1e-11)


def test_equal_vectors_give_the_value_of_a_collapsed_space():
    found = run(np.tile([1.0, 2.0, 2.0], (8, 1)), ["aa", "bb"], 4)
    assert found["all", "isotropy"].value == pytest.approx(math.exp(-1))
    assert {r.status for r in found.values()} == {"collapsed"}
    assert found["all", "kl_diagonal"].value is None
    assert found["all", "calinski_harabasz"].value is None


@pytest.mark.parametrize("seed", range(3))
def test_vectors_without_spread_have_no_divergence_whatever_rounding_makes_of_them(seed):
    """One sentence's vector for all of a language; vectors of rank 4 in 8 dimensions; five vectors, each for many sentences."""
    rng, n, d, langs = np.random.default_rng(seed), 50, 8, ["aa", "bb"]
    raw = rng.standard_normal((2 * n, d)).astype(np.float32)
    constant, flat = raw.copy(), (raw[:, :4] @ raw[:4]).astype(np.float32)
    constant[n:] = raw[0]
    few = raw[np.arange(2 * n) % 5]
    for vectors, lacking in ((constant, {"kl_diagonal", "kl_scatter"}), (flat, {"kl_scatter"}), (few, {"kl_scatter"})):
        found = run(vectors, langs, n, kl=["diagonal", "full", "scatter"], resamples=20)
        assert {metric for (_, metric), record in found.items() if metric.startswith("kl") and record.value is None} == lacking
    # A coordinate may be small: what counts is whether it varies by more than its own rounding.
    small = run(raw * np.array([1e-6, *[1] * (d - 1)], np.float32), langs, n)
    assert None not in {small["all", "kl_diagonal"].value, run(raw, langs, n, kl=["scatter"])["all", "kl_scatter"].value}


def test_a_space_of_three_languages_against_plain_formulas():
    rng = np.random.default_rng(1)
    n, d, langs = 60, 4, ["aa", "bb", "cc"]
    base = rng.standard_normal((n, d))
    raw = np.concatenate([base + 0.3 * rng.standard_normal((n, d)) + 0.2 * shift for shift in range(3)])
    found = run(raw, langs, n, kl=["diagonal", "full", "scatter"])
    unit = raw / np.linalg.norm(raw, axis=1)[:, None]
    assert found["all", "calinski_harabasz"].value == pytest.approx(calinski_harabasz_score(unit, np.tile(np.arange(n), 3)))

    def kl(a, b, shrink, scale):
        s1, s2 = (np.cov(x.T, bias=True) * scale + shrink * np.eye(d) for x in (a, b))
        gap = b.mean(0) - a.mean(0)
        inverse = np.linalg.inv(s2)
        return 0.5 * (np.trace(inverse @ s1) + gap @ inverse @ gap - d + np.log(np.linalg.det(s2) / np.linalg.det(s1)))

    parts = unit[:n], unit[n : 2 * n], unit[2 * n :]
    pairs = [(a, b) for i, a in enumerate(parts) for b in parts[i + 1 :]]
    for name, shrink, scale, divisor in (("kl_full", 1e-3, 1, d), ("kl_scatter", 0, n, 1)):
        expected = np.mean([(kl(a, b, shrink, scale) + kl(b, a, shrink, scale)) / 2 for a, b in pairs]) / divisor
        assert found["all", name].value == pytest.approx(expected)
    assert {r.n_items for r in found.values()} == {180}


def test_resamples_are_the_scores_of_the_sentences_that_they_draw():
    """A sentence comes with its translations; drawn twice it is two clusters. KL-D and index of each draw anew, by plain formulas."""
    rng = np.random.default_rng(1)
    n, d, langs = 40, 5, ["aa", "bb", "cc"]
    base = rng.standard_normal((n, d))
    raw = np.concatenate([base + 0.4 * rng.standard_normal((n, d)) + 0.5 * shift for shift in range(3)])
    evaluation, task = sentences(langs, n), {**TASK, "resamples": 30}
    scored = score_with_resamples("geometry", task, {"test": raw}, {"test": evaluation})
    found = {record.metric: (record, values) for record, values in scored}
    unit = (raw / np.linalg.norm(raw, axis=1)[:, None]).reshape(3, n, d)
    indices, divergences = [], []
    for draw in draws_of(Bootstrap("geometry", 30, 42), n):
        drawn = unit[:, draw]
        indices.append(calinski_harabasz_score(drawn.reshape(-1, d), np.tile(np.arange(n), 3)))
        divergences.append(mean_symmetric(diagonal_kl(drawn.mean(1), drawn.var(1))) / d)
    for metric, expected, tolerance in (("calinski_harabasz", indices, 1e-9), ("kl_diagonal", divergences, 1e-5)):
        record, values = found[metric]
        assert values == pytest.approx(np.array(expected) + record.value - np.mean(expected), rel=tolerance)
        assert record.ci_low < record.value < record.ci_high
    record, values = found["isotropy"]
    assert values.mean() == pytest.approx(record.value)
    assert record.ci_low < record.value < record.ci_high
    whole = {record.metric: record.value for record in score("geometry", {**task, "resamples": 0}, {"test": raw}, {"test": evaluation})}
    assert whole == pytest.approx({metric: record.value for metric, (record, _) in found.items()})


def test_sentences_of_an_article_are_drawn_together():
    rng, n, d, langs = np.random.default_rng(3), 30, 4, ["aa", "bb"]
    raw, articles, builder = rng.standard_normal((2 * n, d)), [str(at // 3) for at in range(n)], EvaluationBuilder("flores")
    for lang in langs:
        for at in range(n):
            builder.item(f"{at}", lang, "sentence", lang, f"{lang} {at}", group=f"{at}", cluster=articles[at])
    scored = score_with_resamples("geometry", {**TASK, "resamples": 20}, {"test": raw}, {"test": builder.build()})
    values = next(values for record, values in scored if record.metric == "calinski_harabasz")
    unit = (raw / np.linalg.norm(raw, axis=1)[:, None]).reshape(2, n, d)
    draws = [np.repeat(np.arange(n), row.astype(int)) for row in next(iter(Bootstrap("geometry", 20, 42).over(articles).counts(n)))]
    again = np.array([calinski_harabasz_score(unit[:, draw].reshape(-1, d), np.tile(np.arange(len(draw)), 2)) for draw in draws])
    assert values - values.mean() == pytest.approx(again - again.mean())


@pytest.mark.parametrize(("variant", "shrink", "scale", "divisor"), [("full", 1e-3, 1, 3), ("scatter", 0, 600, 1)])
def test_divergences_of_full_matrices_on_resamples_are_close_to_those_of_the_sentences_drawn(variant, shrink, scale, divisor):
    """With 200 sentences a dimension, and languages that differ, the linear approximation is nearly the divergence itself."""
    rng = np.random.default_rng(4)
    n, d, langs = 600, 3, ["aa", "bb"]
    base = rng.standard_normal((n, d))
    raw = np.concatenate([(base + 0.4 * rng.standard_normal((n, d))) * scales + 0.3 for scales in ((1, 1, 1), (1, 0.4, 2))])
    task = {**TASK, "resamples": 60, "kl": [variant]}
    scored = score_with_resamples("geometry", task, {"test": raw}, {"test": sentences(langs, n)})
    record, values = next((record, values) for record, values in scored if record.metric == f"kl_{variant}")
    unit, again = (raw / np.linalg.norm(raw, axis=1)[:, None]).reshape(2, n, d), []
    for draw in draws_of(Bootstrap("geometry", 60, 42), n):
        spreads = [scale * np.cov(x[draw].T, bias=True) + shrink * np.eye(d) for x in unit]
        again.append(mean_symmetric(full_kl(unit[:, draw].mean(1), spreads)) / divisor)
    assert np.corrcoef(values, again)[0, 1] > 0.99
    assert values.std() == pytest.approx(np.std(again), rel=0.1)
    assert record.ci_low < record.value < record.ci_high


def test_the_ratio_of_a_resample_is_that_of_its_vectors_along_the_same_directions():
    rng = np.random.default_rng(2)
    n, d = 30, 3
    raw = rng.standard_normal((2 * n, d)) + np.array([2.0, 0, 0])
    unit = raw / np.linalg.norm(raw, axis=1)[:, None]
    _, directions = np.linalg.eigh(unit.T @ unit)
    directions *= np.where((unit @ directions).sum(0) < 0, -1.0, 1.0)
    scored = score_with_resamples("geometry", {**TASK, "resamples": 20}, {"test": raw}, {"test": sentences(["aa", "bb"], n)})
    found = {record.metric: (record, values) for record, values in scored}
    ratios = []
    for draw in draws_of(Bootstrap("geometry", 20, 42), n):
        projections = unit.reshape(2, n, d)[:, draw] @ directions
        plus, minus = np.exp(projections).sum((0, 1)), np.exp(-projections).sum((0, 1))
        tried = [np.where(np.array(signs) == 0, plus, minus) for signs in np.ndindex(*(2,) * d)]
        every = [one.min() / one.max() for one in tried]
        ratios.append((every[0], min(every), max(every)))
    for metric, expected in zip(("isotropy", "isotropy_low", "isotropy_high"), np.array(ratios).T, strict=True):
        record, values = found[metric]
        assert values == pytest.approx(expected + record.value - expected.mean())


def test_groups_of_languages():
    vectors = np.random.default_rng(0).standard_normal((12, 3))
    found = run(
        vectors, ["aa", "bb", "cc"], 4, languages={"all": "all", "head": ["aa", "bb"], "gone": ["aa", "zz"], "one": ["aa"]}, kl=["scatter"]
    )
    assert found["head", "isotropy"].n_items == 8
    assert found["gone", "isotropy"].reason == "no sentences in 'zz'"
    assert found["one", "isotropy"].reason == "fewer than two languages"
    assert found["head", "kl_scatter"].value is not None
    assert run(vectors[:6], ["aa", "bb"], 3, kl=["scatter"])["all", "kl_scatter"].status == "undefined"


def test_all_languages_but_some():
    averages = {"head": ["de", "fr"], "tail": {"all_but": ["head", "en"]}, "all": "all"}
    assert members(averages, "tail", ["en", "de", "sw", "yo"]) == ["sw", "yo"]
    assert members(averages, "all", ["en", "de"]) == ["en", "de"]
    # A misspelt name would leave nothing out.
    with pytest.raises(InputError, match=r"`all_but` .*'tail' .*'haed'.*'head'"):
        members({**averages, "tail": {"all_but": ["haed", "en"]}}, "tail", ["en", "de", "sw"])


def test_sentences_of_a_pivot_count_once():
    builder = EvaluationBuilder("flores")
    for lang in ("de", "fr"):
        for group in "12":
            builder.item(f"{lang}-{group}", lang, "source", lang, f"{lang} {group}", group=group)
            builder.item(f"en-{group}", lang, "target", "en", f"en {group}", group=group)
    evaluation = builder.build()
    task = {**TASK, "languages": {"all": "all"}, "main": {"metric": "isotropy", "subset": "all"}}
    vectors = np.random.default_rng(0).normal(size=(6, 3))
    assert {record.n_items for record in score("geometry", task, {"test": vectors}, {"test": evaluation})} == {6}
