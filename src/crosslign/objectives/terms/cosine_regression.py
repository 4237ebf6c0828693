"""Siamese regression: the cosine of two sentences should be their score (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Generator, Tensor

from crosslign.devices import sent
from crosslign.errors import InputError
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import Batch, Input, Loss, Part, Shape, both_sides, labels_of, mean_of, supervised, unit, widened
from crosslign.options import Layer, Pooling


@OBJECTIVES.register(version=1)
class CosineRegression:
    """`L_i = ( cos(a_i, b_i) − (label_i − low)/(high − low) )²`, mean over the labelled rows.

    For quality estimation (mean direct-assessment score, 0 to 100) and graded similarity (0 to 5). No paper describes its
    fine-tuning; this is the Siamese reading of EMMA-X's table 1.

    Inputs: `a`, `b` [B, d].

    Args:
        low: score that means cosine 0.
        high: score that means cosine 1.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
    """

    shape: Shape = "labelled"

    def __init__(self, low: float = 0.0, high: float = 1.0, pooling: Pooling | None = None, layer: Layer | None = None) -> None:
        if not low < high:
            raise InputError("low must be below high", where="cosine_regression", why=f"low: {low}, high: {high}")
        self.low, self.high, self.pooling, self.layer = low, high, pooling, layer

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return both sides."""
        return both_sides(batch)

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the mean squared error."""
        cosines = (unit(vectors["a"]) * unit(vectors["b"])).sum(1)
        rows = supervised(batch, cosines.device)
        scores = [self._score(row, label) for row, label in zip(batch.ids, labels_of(batch), strict=True)]
        wanted = (sent(torch.tensor(scores, dtype=cosines.dtype), cosines.device) - self.low) / (self.high - self.low)
        errors = widened(cosines - wanted).square() * rows
        return Loss(errors.sum() / rows.sum().clamp(min=1), {"cosine": mean_of(cosines), "wanted": mean_of(wanted)})

    @staticmethod
    def _score(row: str, label: list[float] | None) -> float:
        if label is None or len(label) != 1:
            raise InputError("one score per row is needed", where=f"row {row}", why=f"its label is {label}")
        return float(label[0])
