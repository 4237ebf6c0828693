"""InfoNCE over the pairs of a batch: the SimCSE engine, and vanilla contrastive learning (docs/papers/msimcse.md, docs/papers/scl.md)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Generator, Tensor, nn

from crosslign.devices import numbers_on
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
    hard_negatives,
    kept_logsumexp,
    mean_of,
    part_of,
    text_codes,
)
from crosslign.objectives.views import Encode, OverViews, ViewKinds, Views
from crosslign.options import AboveZero, AnyPart, Layer, Pooling


@OBJECTIVES.register(version=1)
class InfoNCE:
    """Each anchor a must find its own positive b among all positives, and all hard negatives c, of the batch.

    `L_i = −log exp(cos(a_i, b_i)/τ) / [ Σ_j exp(cos(a_i, b_j)/τ) + Σ_j exp(cos(a_i, c_j)/τ + w·1(j = i)) ]`, mean over i;
    anchors against positives only, no symmetric term.

    Inputs: `a`, `b` [B, d], and `c` [C, d] for the C rows that have a hard negative. Pairs and triplets are both taken; a row
    whose b is null is a dropout pair, the same sentence twice. On labelled examples the anchors are the rows, the
    positives their views: SCL's comparator CL (τ = 1), mean or sum over the views.

    Source: SimCSE and mSimCSE; equation 1 of mSimCSE prints neither temperature nor hard negatives, its code has both.
    Differs from SimCSE's code in that a row without a hard negative has none, where SimCSE encodes a space.

    Args:
        temperature: τ, above 0, by which cosines are divided.
        hard_negative_weight: w, added to the logit of an anchor's own hard negative: the logarithm of a weight.
        mask_same_text: leave out of an anchor's denominator what is not a negative for it: sentences equal to the anchor or to
            its positive, and positives of equal anchors.
        projection: name of a part that is applied to all vectors first.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
        over_views: mean or sum of the views' losses.
        encode: labelled examples only: a row's two sentences together (`pair`), or each by itself (`sentences`).
        kinds: labelled examples only; kinds of views to use (`full`, `partial`, `code_switch`); all by default.
    """

    shape: Shape = "pairs"

    def __init__(
        self,
        temperature: AboveZero = 0.05,
        hard_negative_weight: float = 0.0,
        mask_same_text: bool = False,
        projection: AnyPart | None = None,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
        over_views: OverViews = "mean",
        encode: Encode = "pair",
        kinds: ViewKinds | None = None,
    ) -> None:
        self.temperature, self.hard_negative_weight, self.mask_same_text = temperature, hard_negative_weight, mask_same_text
        self.projection, self.pooling, self.layer = projection, pooling, layer
        self.views = Views(encode, kinds, over_views)

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return `a`, `b`, and `c` where rows have hard negatives; or rows and views."""
        compared = self.views.inputs(batch) if "views" in batch.columns else both_sides(batch)
        return compared | hard_negatives(batch)

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the mean over the anchors."""
        project = part_of(parts, self.projection, Part) if self.projection else nn.Identity()
        projected = {name: project(own) for name, own in vectors.items()}
        if "views" in batch.columns:
            return self._over_views(projected, batch)
        similarities = cosines(projected["a"], projected["b"])
        logits = similarities / self.temperature
        if "c" in projected:
            hard = cosines(projected["a"], projected["c"]) / self.temperature
            own = torch.arange(len(hard), device=hard.device).unsqueeze(1) == numbers_on(hard.device, batch.with_negative)
            logits = torch.cat([logits, hard + self.hard_negative_weight * own.to(hard.dtype)], 1)
        losses = kept_logsumexp(logits, self._kept(batch, logits)) - logits.diagonal()
        return Loss(losses.mean(), {"positive_cosine": mean_of(similarities.diagonal())})

    def _kept(self, batch: Batch, logits: Tensor) -> Tensor:
        """Return bool [B, B + C]: what stands in the denominator of each anchor."""
        if not self.mask_same_text:
            return torch.ones_like(logits, dtype=torch.bool)
        inputs = both_sides(batch) | hard_negatives(batch)
        a, b, c = text_codes(*(inputs[name].texts if name in inputs else [] for name in "abc"), device=logits.device)
        candidates = torch.cat([b, c])
        same = equal(a, candidates) | equal(b, candidates)
        same[:, : len(a)] |= equal(a, a)
        return ~same.fill_diagonal_(False)

    def _over_views(self, vectors: dict[str, Tensor], batch: Batch) -> Loss:
        losses, positives = [], []
        (codes,) = text_codes(self.views.texts(batch), device=self.views.anchors(vectors, batch).device)
        for pair in self.views.compared(vectors, batch):
            similarities = cosines(pair.anchors, pair.views)
            logits, own = similarities / self.temperature, codes[pair.rows]
            keep = torch.ones_like(logits, dtype=torch.bool)
            if self.mask_same_text:
                keep = ~equal(own, own).fill_diagonal_(False)
            losses.append((kept_logsumexp(logits, keep) - logits.diagonal()).mean())
            positives.append(similarities.diagonal())
        if not losses:
            return Loss(0 * self.views.anchors(vectors, batch).sum())
        return Loss(self.views.joined(losses), {"positive_cosine": mean_of(torch.cat(positives))})
