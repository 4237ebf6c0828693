"""Shape of an embedding space: invariance (KL-D), canonical form (CH-I), isotropy (PR) (PROTOCOLS B18; EMMA-X Table 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from crosslign.tasks import SCORERS
from crosslign.tasks.data import Averages, TaskData, TextSet, members
from crosslign.tasks.measures import Bootstrap, Measure, centred
from crosslign.tasks.scorers._gaussians import diagonal_kl, full_kl, mean_symmetric
from crosslign.vectors import blocks, normalised

Variant = Literal["diagonal", "full", "scatter"]
SHRINKAGE = 1e-3
ISOTROPY = ("isotropy", "isotropy_low", "isotropy_high")
BYTES = 1 << 29
"""Means and variances of the languages on as many resamples as fit are held at once."""


@SCORERS.register
def geometry(
    task: TaskData, *, languages: Averages, kl: Sequence[Variant] = ("diagonal",), resamples: int = 1000, seed: int = 42
) -> Iterator[Measure]:
    """Yield KL-D, Calinski-Harabasz index and principal ratio of the normalised vectors of each named group of languages.

    Items are sentences; those with the same `group` are translations of each other. Metrics: `kl_diagonal` (diagonal Gaussians, mean
    over dimensions), `kl_full` (covariance + 1e-3 I, divided by the number of dimensions), `kl_scatter` (the printed formula: scatter
    matrices, sum over dimensions), each symmetrised and averaged over pairs of languages; `calinski_harabasz`, one cluster a sentence;
    `isotropy`, with eigenvector signs fixed, and its range over all signs, `isotropy_low` and `isotropy_high`.

    Args:
        languages: languages of each group, written as a task's averages are.
        kl: variants of KL-D; `full` and `scatter` hold one d x d matrix a language in memory.
        resamples: bootstrap resamples of the sentences, each with its translations, for the intervals of `kl_diagonal`,
            `calinski_harabasz`, and `isotropy` along the eigenvectors of the whole set; 0 for none. The other variants would factor one
            d x d matrix a language and resample, and have no interval.
        seed: of the bootstrap.
    """
    data, bootstrap = task.only_set(), Bootstrap(task.name, resamples, seed)
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
            yield Measure(name, metric, value, n, reason="the vectors have no spread in some direction", resamples=kept)


def _values(space: _Space, langs: Sequence[str], kl: Sequence[Variant], bootstrap: Bootstrap) -> dict[str, np.ndarray]:
    """Return of each metric its value and, where it has an interval, those on the resamples behind it: float64; NaN where undefined."""
    clusters = space.clusters(langs)
    number = 1 + max(int(cluster.max()) for cluster in clusters)
    times = np.concatenate([np.ones((1, number)), *bootstrap.counts(number)])  # first each sentence once
    values = {f"kl_{variant}": np.array([space.divergence(langs, variant)], dtype=np.float64) for variant in kl}
    if "diagonal" in kl:
        values["kl_diagonal"] = np.append(values["kl_diagonal"], space.resampled_divergence(langs, clusters, times[1:]))
    values["calinski_harabasz"] = calinski_harabasz((space.vectors(lang) for lang in langs), clusters, times)
    return values | dict(zip(ISOTROPY, space.isotropy(langs, clusters, times), strict=True))


class _Space:
    """Vectors of one text set by language, read one language at a time."""

    def __init__(self, data: TextSet) -> None:
        self._data = data
        items = data.items()
        rows: dict[str, list[int]] = {}
        groups: dict[str, list[str]] = {}
        seen: set[tuple[str, int, str]] = set()
        for number, (lang, group) in enumerate(zip(items.langs, items.groups, strict=True)):
            sentence = lang, int(items.rows[number]), group or items.ids[number][1]
            if sentence not in seen:  # a pivot's sentences are items of every subset
                seen.add(sentence)
                rows.setdefault(lang, []).append(sentence[1])
                groups.setdefault(lang, []).append(sentence[2])
        self.rows, self._groups = rows, groups

    def vectors(self, lang: str) -> np.ndarray:
        """Return the unit vectors of one language: float64 [n, d]."""
        return normalised(self._data.matrix, np.array(self.rows[lang]))

    def divergence(self, langs: Sequence[str], variant: Variant) -> float | None:
        """Return one variant of KL-D."""
        means, spreads = [], []
        for lang in langs:
            x = self.vectors(lang)
            means.append(x.mean(0))
            centred = x - means[-1]
            if variant == "diagonal":
                spreads.append((centred**2).mean(0))
            elif variant == "scatter":
                if len(x) <= x.shape[1]:
                    return None
                spreads.append(centred.T @ centred)
            else:
                spreads.append(centred.T @ centred / len(x) + SHRINKAGE * np.eye(x.shape[1]))
        d = len(means[0])
        if variant == "diagonal":
            variances = np.stack(spreads)
            return mean_symmetric(diagonal_kl(np.stack(means), variances)) / d if variances.min() > 0 else None
        try:
            value = mean_symmetric(full_kl(np.stack(means), spreads))
        except np.linalg.LinAlgError:
            return None
        return value if variant == "scatter" else value / d

    def resampled_divergence(self, langs: Sequence[str], clusters: Sequence[np.ndarray], times: np.ndarray) -> np.ndarray:
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
        number = {group: at for at, group in enumerate(dict.fromkeys(group for lang in langs for group in self._groups[lang]))}
        return [np.array([number[group] for group in self._groups[lang]]) for lang in langs]

    def isotropy(
        self, langs: Sequence[str], clusters: Sequence[np.ndarray], times: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the principal ratio of each resample, float64 [r], and the ratio's range over all eigenvector signs, [1] each.

        The eigenvectors are those of all vectors, each counted once, whatever the resample.
        """
        gram, total = np.zeros(()), np.zeros(())
        for lang in langs:
            x = self.vectors(lang)
            gram, total = gram + x.T @ x, total + x.sum(0)
        _, directions = np.linalg.eigh(gram)
        directions = directions * np.where(total @ directions < 0, -1.0, 1.0)
        plus, minus = np.zeros((times.shape[1], len(directions))), np.zeros(len(directions))
        for lang, cluster in zip(langs, clusters, strict=True):
            projections = self.vectors(lang) @ directions
            np.add.at(plus, cluster, np.exp(projections))
            minus += np.exp(-projections).sum(0)
        drawn = times @ plus
        low, high = ratio_range(plus.sum(0), minus)
        return drawn.min(1) / drawn.max(1), np.array([low]), np.array([high])


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
    return np.asarray(np.divide(between * (n - number), within * (number - 1), out=out, where=defined))


def ratio_range(plus: np.ndarray, minus: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest min/max ratio when each direction takes either of its two values.

    Args:
        plus, minus: float64 [d], the value of each direction under either sign.
    """
    low, high = np.minimum(plus, minus), np.maximum(plus, minus)
    small, large = np.argsort(low)[:2], np.argsort(-high)[:2]
    smallest = min((low[a] / high[b] for a in small for b in large if a != b), default=1.0)
    # The largest ratio: the narrowest window over all values that holds one value of each direction.
    values, owner = np.concatenate([plus, minus]), np.tile(np.arange(len(plus)), 2)
    order = np.argsort(values)
    values, owner = values[order], owner[order]
    held, inside, start, largest = np.zeros(len(plus), dtype=int), 0, 0, 0.0
    for end, direction in enumerate(owner):
        inside += held[direction] == 0
        held[direction] += 1
        while inside == len(plus):
            largest = max(largest, values[start] / values[end])
            held[owner[start]] -= 1
            inside -= held[owner[start]] == 0
            start += 1
    return float(smallest), float(largest)
