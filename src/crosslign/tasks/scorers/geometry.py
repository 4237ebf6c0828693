"""Shape of an embedding space: invariance (KL-D), canonical form (CH-I), isotropy (PR) (PROTOCOLS B18; EMMA-X Table 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from crosslign.tasks import SCORERS
from crosslign.tasks.data import Averages, TaskData, TextSet, members
from crosslign.tasks.measures import Measure
from crosslign.tasks.scorers._gaussians import diagonal_kl, full_kl, mean_symmetric
from crosslign.vectors import normalised

Variant = Literal["diagonal", "full", "scatter"]
SHRINKAGE = 1e-3
ISOTROPY = ("isotropy", "isotropy_low", "isotropy_high")


@SCORERS.register
def geometry(task: TaskData, *, languages: Averages, kl: Sequence[Variant] = ("diagonal",)) -> Iterator[Measure]:
    """Yield KL-D, Calinski-Harabasz index and principal ratio of the normalised vectors of each named group of languages.

    Items are sentences; those with the same `group` are translations of each other. Metrics: `kl_diagonal` (diagonal Gaussians, mean
    over dimensions), `kl_full` (covariance + 1e-3 I, divided by the number of dimensions), `kl_scatter` (the printed formula: scatter
    matrices, sum over dimensions), each symmetrised and averaged over pairs of languages; `calinski_harabasz`, one cluster a sentence;
    `isotropy`, with eigenvector signs fixed, and its range over all signs, `isotropy_low` and `isotropy_high`.

    Args:
        languages: languages of each group, written as a task's averages are.
        kl: variants of KL-D; `full` and `scatter` hold one d x d matrix a language in memory.
    """
    data = task.only_set()
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
        values = {f"kl_{variant}": space.divergence(langs, variant) for variant in kl}
        values["calinski_harabasz"] = space.calinski_harabasz(langs)
        values |= dict(zip(ISOTROPY, space.isotropy(langs), strict=True))
        for metric in metrics:
            yield Measure(name, metric, values[metric], n, reason="the vectors have no spread in some direction")


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

    def calinski_harabasz(self, langs: Sequence[str]) -> float | None:
        """Return the index with one cluster for each group of translations."""
        number = {group: at for at, group in enumerate(dict.fromkeys(group for lang in langs for group in self._groups[lang]))}
        clusters = [np.array([number[group] for group in self._groups[lang]]) for lang in langs]
        return calinski_harabasz((self.vectors(lang) for lang in langs), clusters)

    def isotropy(self, langs: Sequence[str]) -> tuple[float, float, float]:
        """Return the principal ratio, and its range over all eigenvector signs."""
        gram, total = np.zeros(()), np.zeros(())
        for lang in langs:
            x = self.vectors(lang)
            gram, total = gram + x.T @ x, total + x.sum(0)
        _, directions = np.linalg.eigh(gram)
        directions = directions * np.where(total @ directions < 0, -1.0, 1.0)
        plus, minus = np.zeros(len(directions)), np.zeros(len(directions))
        for lang in langs:
            projections = self.vectors(lang) @ directions
            plus += np.exp(projections).sum(0)
            minus += np.exp(-projections).sum(0)
        return float(plus.min() / plus.max()), *ratio_range(plus, minus)


def calinski_harabasz(blocks: Iterator[np.ndarray] | Sequence[np.ndarray], clusters: Sequence[np.ndarray]) -> float | None:
    """Return [B / (K - 1)] / [W / (n - K)]; None where there is one cluster only, or nothing varies within clusters.

    Args:
        blocks: vectors, float64 [n_i, d].
        clusters: for each block, the cluster numbers of its rows, int64 from 0; every number up to the largest occurs.
    """
    k, n = max(int(block.max()) for block in clusters) + 1, sum(len(block) for block in clusters)
    counts = np.bincount(np.concatenate(clusters), minlength=k)
    squares, sums = 0.0, np.zeros((k, 0))
    for x, cluster in zip(blocks, clusters, strict=True):
        sums = sums if sums.size else np.zeros((k, x.shape[1]))
        np.add.at(sums, cluster, x)
        squares += float((x**2).sum())
    explained = float(((sums**2).sum(1) / counts).sum())
    between, within = explained - float((sums.sum(0) ** 2).sum() / n), squares - explained
    if k < 2 or n <= k or within <= 1e-12 * squares:
        return None
    return (between / (k - 1)) / (within / (n - k))


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
