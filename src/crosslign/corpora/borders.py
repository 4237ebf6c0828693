"""Thresholds that a clean sample sets, with the rows near them, so that who reads neither language can judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslign.corpora.filters import Mask, Sides
from crosslign.errors import InputError

Values = NDArray[np.float64]
SHOWN, LONGEST = 20, 200
"""Rows that are shown on each side of a threshold, and characters of each of their sentences."""
FEWEST = 100
"""Clean sentences or pairs that a threshold is learned from, at least."""


@dataclass
class Border:
    """A threshold, how many rows lie on its two sides, and those nearest to it.

    Attributes:
        measure: what is measured, of which languages.
        bound: the threshold, itself kept.
        sign: 1 where larger values are kept, -1 where smaller ones are.
        rows, kept: rows that were measured, and those that it keeps.
        inside, outside: (distance, row's number, value, sentences) of the nearest rows, nearest first.
    """

    measure: str
    bound: float
    sign: int
    rows: int = 0
    kept: int = 0
    inside: list[tuple[float, int, float, list[str]]] = field(default_factory=list)
    outside: list[tuple[float, int, float, list[str]]] = field(default_factory=list)

    def keep(self, values: Values, batch: Sides, start: int) -> Mask:
        """Return which rows are kept; those without a value (NaN) are. Notes the rows near the bound."""
        distances = self.sign * (values - self.bound)
        good = distances >= 0
        known = ~np.isnan(values)
        self.rows, self.kept = self.rows + int(known.sum()), self.kept + int(good.sum())
        for near, mask in ((self.inside, good), (self.outside, known & ~good)):
            rows = np.flatnonzero(mask)
            for row in rows[np.argsort(np.abs(distances[rows]), kind="stable")[:SHOWN]].tolist():
                texts = [str(text)[:LONGEST] for text in (batch.left_texts[row], batch.right_texts[row]) if text is not None]
                near.append((abs(float(distances[row])), start + row, float(values[row]), texts))
            near.sort(key=lambda one: one[:2])
            del near[SHOWN:]
        return good | ~known

    def told(self) -> dict[str, Any]:
        """Return it for the lineage."""
        near = {
            name: [[round(value, 4), *texts] for _, _, value, texts in rows]
            for name, rows in (("inside", self.inside), ("outside", self.outside))
        }
        return {
            "measure": self.measure,
            "bound": round(self.bound, 4),
            "at_least": self.sign > 0,
            "rows": self.rows,
            "kept": self.kept,
            **near,
        }


def require_enough(values: Values, unit: str, measure: str, where: str) -> None:
    """Refuse a clean sample with too few values of a measure."""
    if len(values) < FEWEST:
        do = f"Add text until it has {FEWEST} or more"
        raise InputError(f"the clean sample has only {len(values)} {unit} for the {measure}", where=where, do=do)


def lower_border(measure: str, values: Values, alpha: float) -> Border:
    """Return the threshold that all but the share `alpha` of a clean sample's values reach."""
    return Border(measure, float(np.quantile(values, alpha, method="lower")), 1)
