"""Precision and recall of mined pairs by margin, with intervals, from what became of planted pairs (`planted`).

Of n sources T have a translation among the targets. At a threshold, one that has is found right with probability r and is in a wrong
pair with probability w; one that has not is in a wrong pair with probability a. Plants give each as a count of p. Of E mined pairs T r
are right, and T w + (n - T) a are wrong; both sides count the wrong ones, and their mean is taken. T follows from E at the threshold where
plants tell sentences with a translation from others best, that of the largest mean of r + w - a, and serves at all of them. It is one
threshold for all draws: the best of each draw would be the luckiest, whose gap is too wide.

Intervals are those of 2,000 draws of r, w and a: plants are weighted by a Dirichlet distribution (Rubin 1981, doi:10.1214/aos/1176345338)
that holds half an imagined plant more for each outcome, so that a share by itself has Jeffreys' interval (Brown, Cai and DasGupta 2001,
doi:10.1214/ss/1009213286) and no find among p plants is not taken for none among a million sentences. What is asked is what this output
holds, not what others of its kind would: for given shares right pairs vary as binomial counts do, wrong ones as Poisson counts. Both are
drawn once, along the thresholds, and T is what E leaves: a draw with more wrong pairs by chance has fewer translations, and so more
sentences that could be in a wrong pair. Drawn apart, the two would cancel where in truth they add, and precision's interval be too narrow.

All of this supposes that plants are text of the sides' kind. `unlike` says where length and neighbourhood show that they are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.mining.margin import Pairs, Retrieval

DRAWS = 2_000
STEPS = 60
"""Thresholds of a curve, about."""
ENDS = (0.025, 0.5, 0.975)
COUNTED = {"fwd": ("source",), "bwd": ("target",), "max": ("source", "target"), "intersect": ("source", "target")}
"""Sides whose sentences a retrieval uses once at most, by which wrong pairs can be counted."""
UNLIKE = 0.15
"""Distance of two distributions (Kolmogorov and Smirnov) up to which plants may pass as text of the sides' kind, if they are many."""
CHANCE = 2.0
"""The same of few plants, in units of the distance that samples of one distribution have: larger ones come in one of 1,500 samples."""


@dataclass(frozen=True)
class Found:
    """At which score each plant was found; -inf where it was not. All float64 [p].

    Attributes:
        right: planted pair, its two sentences as one pair.
        source_wrong, target_wrong: planted pair, its source (its target) in a pair with something else.
        lone_source, lone_target: source or target whose translation was not hidden, in any pair.
        near_source, near_target: mean cosine of the lone sentence to its neighbours but the nearest.
        paired_near_source, paired_near_target: the same of the sentence whose translation was hidden.
    """

    right: np.ndarray
    source_wrong: np.ndarray
    target_wrong: np.ndarray
    lone_source: np.ndarray
    lone_target: np.ndarray
    near_source: np.ndarray
    near_target: np.ndarray
    paired_near_source: np.ndarray
    paired_near_target: np.ndarray

    def __len__(self) -> int:
        return len(self.right)

    def neighbourhood(self, side: str, share: float, *, seed: int = 42) -> np.ndarray:
        """Return what `typical` is of plants of which as many have a translation as of a side's sentences: float64 [p].

        A sentence with a translation has one neighbour more that is near, so lone plants alone would seem to be another kind of text.

        Args:
            side: source or target.
            share: sentences of the side that have a translation, 0 to 1.
            seed: of the plants that are taken with theirs.
        """
        paired = np.random.default_rng(seed).permutation(len(self)) < share * len(self)
        return np.asarray(np.where(paired, getattr(self, f"paired_near_{side}"), getattr(self, f"near_{side}")))


@dataclass(frozen=True)
class Curve:
    """What is expected of the pairs with a score of at least each threshold.

    Attributes:
        thresholds: float64 [t], ascending.
        pairs: int64 [t], mined pairs at or above each.
        precision, recall: float64 [3, t]; lower end of the 95 % interval, median, upper end. NaN where there is no pair.
        translations: of the sentences of a side, how many have a translation in the other: lower end, median, upper end.
    """

    thresholds: np.ndarray
    pairs: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    translations: np.ndarray

    def row(self, at: int) -> dict[str, Any]:
        """Return one threshold as a record."""
        shares = {name: [round(float(end), 4) for end in getattr(self, name)[:, at]] for name in ("precision", "recall")}
        return {"threshold": float(self.thresholds[at]), "pairs": int(self.pairs[at]), **shares}

    def records(self) -> list[dict[str, Any]]:
        """Return the thresholds that have pairs, best first."""
        return [self.row(at) for at in range(len(self.thresholds) - 1, -1, -1) if self.pairs[at]]


def _grid(pairs: Pairs, found: Found) -> np.ndarray:
    """Return the thresholds of a curve: quantiles of the scores of mined pairs, and of those of plants."""
    planted = np.concatenate([found.right, found.lone_source, found.lone_target])
    scores = (pairs.scores, planted[np.isfinite(planted)])
    steps = np.linspace(0, 1, STEPS)
    quantiles = [np.quantile(part, steps, method="closest_observation") for part in scores if len(part)]
    return np.unique(np.concatenate(quantiles)) if quantiles else np.zeros(0)


class _Shares:
    """Draws of the shares of plants that reach each threshold: float64 [draws, t] each."""

    def __init__(self, found: Found, grid: np.ndarray, draws: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._weights, self._grid, self._rng = rng.standard_exponential((draws, len(found))), grid, rng
        self._found = found

    def _reach(self, scores: np.ndarray) -> np.ndarray:
        """Return the sum of the weights of plants with a score at or above each threshold: [draws, t]."""
        return np.asarray(self._weights @ (scores[:, None] >= self._grid[None]).astype(np.float64))

    def _half(self) -> np.ndarray:
        drawn: np.ndarray = self._rng.standard_gamma(0.5, (len(self._weights), 1))
        return drawn

    def paired(self, side: str) -> tuple[np.ndarray, np.ndarray]:
        """Return draws of r and w of a side."""
        right, wrong, none = self._half(), self._half(), self._half()
        total = self._weights.sum(1, keepdims=True) + right + wrong + none
        return (self._reach(self._found.right) + right) / total, (self._reach(getattr(self._found, f"{side}_wrong")) + wrong) / total

    def lone(self, side: str) -> np.ndarray:
        """Return draws of a of a side."""
        wrong, none = self._half(), self._half()
        total = self._weights.sum(1, keepdims=True) + wrong + none
        drawn: np.ndarray = (self._reach(getattr(self._found, f"lone_{side}")) + wrong) / total
        return drawn


def _counts(shares: np.ndarray, number: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw how many of `number` [draws, 1] items reach each threshold, by the shares that do [draws, t]: int64 [draws, t].

    One that reaches a threshold reaches all below it, so each threshold's items are drawn among those of the one below.
    """
    of = np.divide(shares[:, 1:], shares[:, :-1], out=np.zeros_like(shares[:, 1:]), where=shares[:, :-1] > 0).clip(0, 1)
    drawn = [rng.binomial(number[:, 0], shares[:, 0].clip(0, 1))]
    for at in range(of.shape[1]):
        drawn.append(rng.binomial(drawn[-1], of[:, at]))
    return np.stack(drawn, axis=1)


def _wrong(means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw how far the wrong pairs that reach each threshold are from their mean, those above among those below: float64 [draws, t]."""
    steps = (means - np.append(means[:, 1:], np.zeros((len(means), 1)), axis=1)).clip(0)
    drawn: np.ndarray = (rng.poisson(steps) - steps)[:, ::-1].cumsum(axis=1)[:, ::-1]
    return drawn


def curve(pairs: Pairs, sizes: tuple[int, int], found: Found, retrieval: Retrieval, *, draws: int = DRAWS, seed: int = 42) -> Curve:
    """Estimate precision and recall at thresholds from the lowest score of a pair to the highest.

    Args:
        pairs: mined without plants.
        sizes: sentences of the two sides.
        found: what became of the plants.
        retrieval: by which both were found.
        draws: of the shares.
        seed: of all draws.
    """
    grid = _grid(pairs, found)
    mined = np.array([np.count_nonzero(pairs.scores >= threshold) for threshold in grid], dtype=np.int64)
    if not len(grid):
        return Curve(grid, mined, np.zeros((3, 0)), np.zeros((3, 0)), np.zeros(3))
    shares, rng, sides = _Shares(found, grid, draws, seed), np.random.default_rng([seed, 1]), COUNTED[retrieval]
    right, in_wrong = (np.mean(drawn, axis=0) for drawn in zip(*(shares.paired(side) for side in sides), strict=True))
    alone = [shares.lone(side) for side in sides]
    lone, in_all = np.mean(alone, axis=0), np.mean([sizes[side == "target"] * one for side, one in zip(sides, alone, strict=True)], axis=0)
    best = np.where(mined > 0, (right + in_wrong - lone).mean(0), -np.inf).argmax()
    gap, most = (right + in_wrong - lone)[:, [best]].clip(min=1e-9), min(sizes)
    middle = np.round(((mined[best] - in_all[:, [best]]) / gap).clip(0, most)).astype(np.int64)
    more_right = _counts(right, middle, rng) - middle * right
    more_wrong = _wrong((in_all + middle * (in_wrong - lone)).clip(0), rng)
    translations = ((mined[best] - in_all[:, [best]] - (more_right + more_wrong)[:, [best]]) / gap).clip(0, most)
    wrong = (in_all + translations * (in_wrong - lone) + more_wrong).clip(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = 1 - (wrong / mined).clip(0, 1)
        recall = ((translations * right + more_right) / translations).clip(0, 1)
    recall = np.where(translations > 0, recall, right)
    return Curve(
        grid,
        mined,
        np.quantile(np.where(mined > 0, precision, np.nan), ENDS, axis=0),
        np.quantile(recall, ENDS, axis=0),
        np.quantile(translations, ENDS),
    )


def choose(
    records: Sequence[Mapping[str, Any]], *, precision: float | None = None, recall: float | None = None
) -> Mapping[str, Any] | None:
    """Return the threshold that follows from what is asked, or None where no threshold reaches it.

    Args:
        records: of a curve, best first.
        precision: the lowest threshold whose median is as high is chosen.
        recall: the highest threshold whose median is as high is chosen.
    """
    if recall is not None:
        return next((record for record in records if record["recall"][1] >= recall), None)
    return next((record for record in reversed(records) if record["precision"][1] >= (precision or 0.0)), None)


def asked_threshold(calibration: Mapping[str, Any], precision: float | None, recall: float | None, where: Path) -> float:
    """Return the threshold that follows from a calibration.

    Raises:
        InputError: no threshold reaches what is asked; says what is the best that there is.
    """
    records = calibration["curve"]
    if found := choose(records, precision=precision, recall=recall):
        return float(found["threshold"])
    name, asked = ("precision", precision) if precision is not None else ("recall", recall)
    if not records:
        raise InputError(
            f"the {name} cannot be estimated", where=str(where), why="no pair was mined", do="Check the two sides and their languages"
        )
    best = max(records, key=lambda record: record[name][1])
    low, middle, high = best[name]
    why = f"the highest is {middle:.3f} ({low:.3f} to {high:.3f}) with {number_of(best['pairs'], 'pair')}, at {best['threshold']:.4f}"
    do = (
        "Ask for a lower precision, or name more plants"
        if precision is not None
        else "Ask for a lower recall, raise `k`, or use a better encoder"
    )
    raise InputError(f"no threshold has an expected {name} of {asked}", where=str(where), why=why, do=do)


def distance(left: np.ndarray, right: np.ndarray) -> float:
    """Return the largest difference of two cumulative distributions (Kolmogorov and Smirnov)."""
    left, right = np.sort(left), np.sort(right)
    both = np.concatenate([left, right])
    below = (np.searchsorted(part, both, side="right") / len(part) for part in (left, right))
    return float(np.abs(next(below) - next(below)).max())


def unlike(values: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Return by which properties plants differ from the sides, with their distances; empty where they may be of one kind.

    Args:
        values: of the sides' sentences and of the plants', by property.
    """
    found = {}
    for name, (own, planted) in values.items():
        by_chance = CHANCE * float(np.sqrt(1 / len(own) + 1 / len(planted)))
        if (apart := distance(own, planted)) > max(UNLIKE, by_chance):
            found[name] = round(apart, 3)
    return found
