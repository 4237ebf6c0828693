"""Question and answer, or mention and entity, in one space (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import torch
from torch import Generator, Tensor

from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import (
    Batch,
    Input,
    Loss,
    Part,
    Shape,
    both_sides,
    cosines,
    equal,
    kept_logsumexp,
    mean_of,
    part_of,
    text_codes,
)
from crosslign.objectives.parts.logit_scale import LogitScale
from crosslign.options import Layer, Pooling, Schema


@OBJECTIVES.register(version=1)
class DualEncoder:
    """In-batch softmax from a to b: `L_i = −log exp(g·cos(a_i, b_i)) / Σ_j exp(g·cos(a_i, b_j))`, mean over i; g is trained.

    Source: XTREME's LAReQA and Mewsli-X fine-tuning, which accumulates gradients over steps of 4 rows whose negatives are the
    3 others; a batch here is one softmax.

    Inputs: `a` (questions, mentions) and `b` (answers, entities), [B, d], by one encoder.

    Args:
        scale: name of a `logit_scale` part.
        mask_same_text: leave out of a row's denominator other rows' b that are equal to its own, and those of equal a.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
    """

    shape: Shape = "pairs"

    def __init__(
        self,
        scale: Annotated[str, Schema(part=["logit_scale"])],
        mask_same_text: bool = False,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
    ) -> None:
        self.scale, self.mask_same_text, self.pooling, self.layer = scale, mask_same_text, pooling, layer

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return both sides."""
        return both_sides(batch)

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the mean over the rows."""
        scale = part_of(parts, self.scale, LogitScale)
        similarities = cosines(vectors["a"], vectors["b"])
        logits = scale(similarities)
        keep = torch.ones_like(logits, dtype=torch.bool)
        if self.mask_same_text:
            sides = both_sides(batch)
            a, b = text_codes(sides["a"].texts, sides["b"].texts, device=logits.device)
            keep = ~(equal(a, a) | equal(b, b)).fill_diagonal_(False)
        losses = kept_logsumexp(logits, keep) - logits.diagonal()
        logged = {"positive_cosine": mean_of(similarities.diagonal()), "scale": scale.scale.detach()}
        return Loss(losses.mean(), logged)
