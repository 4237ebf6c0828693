"""Shape of an embedding space: invariance (KL-D), canonical form (CH-I), isotropy (PR) (docs/protocols.md; EMMA-X Table 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np

from crosslign.options import Natural, Schema
from crosslign.tasks import SCORERS
from crosslign.tasks.data import Averages, EncodedCorpus, TaskData, members
from crosslign.tasks.measures import Bootstrap, Measure, centred
from crosslign.tasks.scorers._gaussians import diagonal_kl, full_kl, kl_gradients, mean_symmetric
from crosslign.vectors import blocks, normalised

Variant = Literal["diagonal", "full", "scatter"]
SHRINKAGE = 1e-3
ISOTROPY = ("isotropy", "isotropy_low", "isotropy_high")
NO_SPREAD = "the vectors have no spread in some direction"
NO_VALUE = {
    "kl_scatter": "a scatter matrix is singular: each language needs more different sentences than the vectors have dimensions",
    "calinski_harabasz": "there is one sentence alone, none has a translation, or translations have equal vectors",
}
"""Why a metric is not defined, where that is not for want of spread."""
EPSILON = float(np.finfo(np.float32).eps)
"""Relative rounding of embeddings: a coordinate whose deviation lies below this share of its size has no spread."""
BYTES = 1 << 29
"""Means and variances of the languages on as many resamples as fit are held at once."""


@SCORERS.register(version=3, gives={"kl_{kl}": (), "calinski_harabasz": (), "isotropy": (), "isotropy_low": (), "isotropy_high": ()})
def geometry(
    task: TaskData,
    *,
    languages: Averages,
    kl: Annotated[Sequence[Variant], Schema(uniqueItems=True)] = ("diagonal",),
    resamples: Natural = 1000,
    seed: Natural = 42,
) -> Iterator[Measure]:
    """Yield KL-D, Calinski-Harabasz index and principal ratio of the normalised vectors of each named group of languages.

    Items are sentences; those with the same `group` are translations of each other. Metrics: `kl_diagonal` (diagonal Gaussians, mean
    over dimensions), `kl_full` (covariance + 1e-3 I, divided by the number of dimensions), `kl_scatter` (the printed formula: scatter
    matrices, sum over dimensions), each symmetrised and averaged over pairs of languages; `calinski_harabasz`, one cluster a sentence;
    `isotropy`, with eigenvector signs fixed, and its range over all signs, `isotropy_low` and `isotropy_high`.

    Args:
        languages: languages of each group, written as a task's averages are.
        kl: variants of KL-D; `full` and `scatter` hold one d x d matrix a language in memory.
        resamples: bootstrap resamples of the sentences, each with its translations; 0 for none. The ratios of a resample are those along
            the eigenvectors of the whole set, its `kl_full` and `kl_scatter` linear approximations: sentences that are drawn twice leave
            so few different ones for a d x d matrix that its KL says nothing of the sample's.
        seed: of the bootstrap.
    """
    data, bootstrap = task.only_corpus(), Bootstrap(task.name, resamples, seed)
    space = _Space(data)
    for name in languages:
        langs = members(languages, name, list(space.rows))
        metrics = [*(f"kl_{variant}" for variant in kl), "calinski_harabasz", *ISOTROPY]
        missing = [lang for lang in langs if lang not in space.rows]
        if missing or len(langs) < 2:
            reason = f"no sentences in {missing[0]!r}" if missing else "fewer than two languages"
            yield from (Measure(name, metric, None, 0, reason=reason) for metric in metrics)
            continue
        n = sum(len(space.rows[lang]) for lang in langs)
        found = _values(space, langs, kl, bootstrap)
        for metric in metrics:
            value, drawn = float(found[metric][0]), found[metric][1:]
            kept = None if not len(drawn) or np.isnan(value) else centred(drawn, value, 1.0 if metric in ISOTROPY else np.inf)
            yield Measure(name, metric, value, n, reason=NO_VALUE.get(metric, NO_SPREAD), resamples=kept)


def _values(space: _Space, langs: Sequence[str], kl: Sequence[Variant], bootstrap: Bootstrap) -> dict[str, np.ndarray]:
    """Return of each metric its value and, behind it, those on the resamples: float64; NaN, and no others, where it is undefined."""
    clusters = space.clusters(langs)
    number = 1 + max(int(cluster.max()) for cluster in clusters)
    times = np.concatenate([np.ones((1, number)), *bootstrap.over(space.bundles(langs)).counts(number)])  # first each sentence once
    values = {f"kl_{variant}": space.divergence(langs, variant, clusters, times[1:]) for variant in kl}
    values["calinski_harabasz"] = calinski_harabasz((space.vectors(lang) for lang in langs), clusters, times)
    return values | dict(zip(ISOTROPY, space.isotropy(langs, clusters, times), strict=True))


class _Space:
    """Vectors of one evaluation corpus by language, read one language at a time."""

    def __init__(self, data: EncodedCorpus) -> None:
        self._data = data
        items = data.items()
        rows: dict[str, list[int]] = {}
        groups: dict[str, list[str]] = {}
        self._bundles: dict[str, str | None] = {}
        seen: set[tuple[str, int, str]] = set()
        for number, (lang, group, bundle) in enumerate(zip(items.langs, items.groups, items.clusters, strict=True)):
            sentence = lang, int(items.rows[number]), group or items.ids[number][1]
            if sentence not in seen:  # a pivot's sentences are items of every subset
                seen.add(sentence)
                rows.setdefault(lang, []).append(sentence[1])
                groups.setdefault(lang, []).append(sentence[2])
                self._bundles.setdefault(sentence[2], bundle)
        self.rows, self._groups = rows, groups

    def vectors(self, lang: str) -> np.ndarray:
        """Return the unit vectors of one language: float64 [n, d]."""
        return normalised(self._data.matrix, np.array(self.rows[lang]))

    def divergence(self, langs: Sequence[str], variant: Variant, clusters: Sequence[np.ndarray], times: np.ndarray) -> np.ndarray:
        """Return one variant of KL-D and, behind it, those of resamples that draw each group of translations so many times: [1 + r]."""
        means, spreads = [], []
        for lang in langs:
            x = self.vectors(lang)
            means.append(x.mean(0))
            centred = x - means[-1]
            if variant == "diagonal":
                spreads.append((centred**2).mean(0))
            elif variant == "scatter":
                spreads.append(centred.T @ centred)
            else:
                spreads.append(centred.T @ centred / len(x) + SHRINKAGE * np.eye(x.shape[1]))
        centres, d = np.stack(means), len(means[0])
        if variant == "diagonal":
            variances = np.stack(spreads)
            known = (variances > EPSILON**2 * (centres**2 + variances)).all()
            value = mean_symmetric(diagonal_kl(centres, variances)) / d if known else np.nan
            return np.append(value, self._resampled_diagonal(langs, clusters, times))
        if variant == "scatter" and any(_singular(spread, len(self.rows[lang])) for spread, lang in zip(spreads, langs, strict=True)):
            return np.array([np.nan])
        try:
            value = mean_symmetric(full_kl(centres, spreads))
        except np.linalg.LinAlgError:
            return np.array([np.nan])
        drawn = self._linear(langs, clusters, times, kl_gradients(centres, spreads), variant == "scatter")
        return np.append(value, value + drawn) / (1 if variant == "scatter" else d)

    def _linear(
        self,
        langs: Sequence[str],
        clusters: Sequence[np.ndarray],
        times: np.ndarray,
        gradients: Iterator[tuple[np.ndarray, np.ndarray]],
        scatter: bool,
    ) -> np.ndarray:
        """Return what each resample adds to a function of means and covariances, or scatter matrices, by its gradients: float64 [r]."""
        added = np.zeros(len(times))
        for lang, cluster, (by_mean, by_spread) in zip(langs, clusters, gradients, strict=True):
            x = self.vectors(lang)
            x -= x.mean(0)
            influence = x @ by_mean + (x @ by_spread * x).sum(1) * (len(x) if scatter else 1)
            drawn = times[:, cluster]
            with np.errstate(invalid="ignore"):  # a resample may hold no sentence of a language
                added += drawn @ (influence - influence.mean()) / drawn.sum(1)
        return added

    def _resampled_diagonal(self, langs: Sequence[str], clusters: Sequence[np.ndarray], times: np.ndarray) -> np.ndarray:
        """Return the diagonal KL-D of resamples that draw each group of translations so many times: float64 [r], from [r, groups]."""
        d = self._data.matrix.shape[1]
        found = np.full(len(times), np.nan)
        for at in blocks(len(times), max(1, BYTES // (16 * len(langs) * d))):
            means, variances = np.empty((2, at.stop - at.start, len(langs), d))
            for place, (lang, cluster) in enumerate(zip(langs, clusters, strict=True)):
                x = self.vectors(lang)
                centre = x.mean(0)
                # Without their centre the vectors are short: float32, at half the time, loses nothing that an interval shows.
                spread, drawn = (x - centre).astype(np.float32), times[at][:, cluster].astype(np.float32)
                with np.errstate(divide="ignore", invalid="ignore"):  # a resample may hold no sentence of a language
                    drawn /= drawn.sum(1, keepdims=True)
                shift = drawn @ spread
                means[:, place] = centre + shift
                variances[:, place] = drawn @ spread**2 - shift**2
            for number, (mean, variance) in enumerate(zip(means, variances, strict=True), start=at.start):
                if variance.min() > 0:
                    found[number] = mean_symmetric(diagonal_kl(mean, variance)) / d
        return found

    def clusters(self, langs: Sequence[str]) -> list[np.ndarray]:
        """Return for each language the number of each sentence's group of translations: int64, from 0, counted as they come."""
        number = {group: at for at, group in enumerate(self._named(langs))}
        return [np.array([number[group] for group in self._groups[lang]]) for lang in langs]

    def bundles(self, langs: Sequence[str]) -> list[str | None]:
        """Return for each group of translations, in the order of its number, what it was sampled together with, such as its article."""
        return [self._bundles[group] for group in self._named(langs)]

    def _named(self, langs: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(group for lang in langs for group in self._groups[lang]))

    def isotropy(
        self, langs: Sequence[str], clusters: Sequence[np.ndarray], times: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the principal ratio of each resample, and the ends of its range over all eigenvector signs: float64 [r] each.

        The eigenvectors are those of all vectors, each counted once, whatever the resample.
        """
        gram, total = np.zeros(()), np.zeros(())
        for lang in langs:
            x = self.vectors(lang)
            gram, total = gram + x.T @ x, total + x.sum(0)
        _, directions = np.linalg.eigh(gram)
        directions = directions * np.where(total @ directions < 0, -1.0, 1.0)
        plus, minus = np.zeros((2, times.shape[1], len(directions)))
        for lang, cluster in zip(langs, clusters, strict=True):
            projections = self.vectors(lang) @ directions
            np.add.at(plus, cluster, np.exp(projections))
            np.add.at(minus, cluster, np.exp(-projections))
        drawn = times @ plus
        return drawn.min(1) / drawn.max(1), *ratio_range(drawn, times @ minus)


def _singular(scatter: np.ndarray, n: int) -> bool:
    """Tell whether n unit vectors vary in some direction by no more than the rounding of float32."""
    return n <= len(scatter) or bool(np.linalg.eigvalsh(scatter)[0] <= n * EPSILON**2)


def calinski_harabasz(
    vectors: Iterator[np.ndarray] | Sequence[np.ndarray], clusters: Sequence[np.ndarray], times: np.ndarray
) -> np.ndarray:
    """Return [B / (K - 1)] / [W / (n - K)]; NaN where there is one cluster only, or nothing varies within clusters.

    Args:
        vectors: blocks of vectors, float64 [n_i, d].
        clusters: for each block, the cluster numbers of its rows, int64 from 0; every number up to the largest occurs.
        times: [r, clusters], how often each cluster counts; as many clusters of equal members.

    Returns:
        float64 [r].
    """
    k = times.shape[1]
    sizes = np.bincount(np.concatenate(clusters), minlength=k)
    squares, sums = np.zeros(k), np.zeros((k, 0))
    for x, cluster in zip(vectors, clusters, strict=True):
        sums = sums if sums.size else np.zeros((k, x.shape[1]))
        np.add.at(sums, cluster, x)
        squares += np.bincount(cluster, (x**2).sum(1), minlength=k)
    number, n, total, explained = times.sum(1), times @ sizes, times @ squares, times @ ((sums**2).sum(1) / sizes)
    between, within = explained - ((times @ sums) ** 2).sum(1) / n, total - explained
    out = np.full(len(times), np.nan)
    defined = (number > 1) & (n > number) & (within > 1e-12 * total)
    np.divide(between * (n - number), within * (number - 1), out=out, where=defined)
    return out


def ratio_range(plus: np.ndarray, minus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest min/max ratio when each direction takes either of its two values: float64 [...] each.

    Args:
        plus, minus: float64 [..., d], the value of each direction under either sign, above 0.
    """
    low, high = np.minimum(plus, minus), np.maximum(plus, minus)
    if low.shape[-1] == 1:
        return np.ones(low.shape[:-1]), np.ones(low.shape[:-1])
    # The smallest: the low value of one direction over the highest of the others.
    second, first = np.split(np.sort(high, -1)[..., -2:], 2, -1)
    smallest = (low / np.where(high == first, second, first)).min(-1)
    # The largest: if v is the least value of that choice, directions that can be lower take their high value, all others their low one.
    order = np.argsort(low, -1)
    low, high = np.take_along_axis(low, order, -1), np.take_along_axis(high, order, -1)
    never = np.full((*low.shape[:-1], 1), np.inf)
    least = np.minimum(np.append(never, np.minimum.accumulate(high, -1), -1), np.append(low, never, -1))
    highest = np.broadcast_to(low[..., -1:], low.shape)
    most = np.maximum(np.append(-never, np.maximum.accumulate(high, -1), -1), np.append(highest, -never, -1))
    return smallest, (least / most).max(-1)
