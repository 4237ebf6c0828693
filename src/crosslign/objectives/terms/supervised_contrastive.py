"""SCL: contrastive learning that knows the labels, for classification and for retrieval (docs/papers/scl.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Generator, Tensor

from crosslign.devices import sent
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import (
    Batch,
    Input,
    Loss,
    Part,
    Shape,
    class_of,
    cosines,
    equal,
    kept_logsumexp,
    mean_of,
    text_codes,
)
from crosslign.objectives.views import Compared, Encode, OverViews, ViewKinds, Views
from crosslign.options import AboveZero, Layer, Pooling

Form = Literal["classification", "retrieval"]
Positives = Literal["own", "same_class"]


@OBJECTIVES.register(
    version=1,
    rules={
        "if": {"required": ["form"], "properties": {"form": {"const": "retrieval"}}},
        "then": {"properties": {"encode": {"const": "sentences"}}},
        "else": {"properties": {"encode": {"const": "pair"}}},
    },
)
class SupervisedContrastive:
    """SCL: only samples of other classes, or of other meanings, are pushed apart.

    With c_ij = cos(φ(x_i), φ(x̂_j)) and s_ij = exp(c_ij/τ), mean over i, mean or sum over the views:

    - classification, positives `own`: `−log s_ii / ( s_ii + Σ_{j: y_j ≠ y_i} s_ij )`. Samples of the anchor's class leave the
      denominator and are not positives: the formula of section 3.3.
    - classification, positives `same_class`: `−mean_{j: y_j = y_i} log s_ij / Σ_k s_ik`, what the abstract and figure 2 say.
    - retrieval (section 5.4): `−Σ_{j: y_ij = 1} log s_ij / ( s_ij + Σ_{k: y_ik ≠ 1} s_ik )`; y_ij = 1 for a sentence's own
      view, for equal strings, and for the views of its paraphrases: the other sentence of a row of class 1.

    The paper prints s in the background formulas where exp(s) is meant; released code does not exist.

    Inputs: `row` [B, d] with `view_0` … (classification), `a`, `b`, `view_0_a`, `view_0_b` … (retrieval): see `Views`.

    Args:
        temperature: τ, 1.0 in the paper.
        form: `classification` (labels are classes) or `retrieval` (label 1 marks paraphrases).
        positives: an anchor's view alone (`own`), or all views of its class (`same_class`); of `classification`.
        normalise_positives: divide an anchor's sum by the number of its positives (retrieval; the paper does not).
        kinds: kinds of views to use (`full`, `partial`, `code_switch`); all by default.
        encode: `pair` or `sentences`; by default what the form needs.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
        over_views: mean or sum of the views' losses.
    """

    shape: Shape = "labelled"

    def __init__(
        self,
        temperature: AboveZero = 1.0,
        form: Form = "classification",
        positives: Positives = "own",
        normalise_positives: bool = False,
        kinds: ViewKinds | None = None,
        encode: Encode | None = None,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
        over_views: OverViews = "mean",
    ) -> None:
        self.temperature, self.normalise_positives = temperature, normalise_positives
        self.form, self.positives = form, positives
        encode = encode or ("sentences" if form == "retrieval" else "pair")
        self.pooling, self.layer = pooling, layer
        self.views = Views(encode, kinds, over_views)

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return anchors and views."""
        return self.views.inputs(batch)

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the mean over the anchors, mean or sum over the views."""
        anchors = self.views.anchors(vectors, batch)
        alike = self._alike(batch, anchors.device)
        losses, cosine = [], []
        for pair in self.views.compared(vectors, batch):
            same = alike[pair.rows][:, pair.rows]
            losses.append(self._losses(pair, same).mean())
            cosine.append(cosines(pair.anchors.detach(), pair.views.detach()).diagonal())
        if not losses:
            return Loss(0 * anchors.sum())
        return Loss(self.views.joined(losses), {"positive_cosine": mean_of(torch.cat(cosine))})

    def _alike(self, batch: Batch, device: torch.device) -> Tensor:
        """Return bool [n, n] over all anchors: of one class, or of one meaning."""
        classes = class_of(batch)
        if self.form == "classification":
            found = sent(classes, device)
            return equal(found, found)
        (codes,) = text_codes(self.views.texts(batch), device=device)
        same = equal(codes, codes)
        rows = len(batch)
        if len(codes) == 2 * rows:
            alike = sent((classes == 1).nonzero().squeeze(1), device)
            first, second = codes[alike], codes[rows + alike]
            forth = equal(codes, first).float() @ equal(second, codes).float() > 0
            same |= forth | forth.T
        return same

    def _losses(self, pair: Compared, alike: Tensor) -> Tensor:
        logits = cosines(pair.anchors, pair.views) / self.temperature
        if self.form == "retrieval":
            negatives = kept_logsumexp(logits, ~alike).unsqueeze(1)
            terms = (torch.logaddexp(logits, negatives) - logits) * alike
            return terms.sum(1) / (alike.sum(1) if self.normalise_positives else 1)
        if self.positives == "same_class":
            return logits.logsumexp(1) - (logits * alike).sum(1) / alike.sum(1)
        own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
        return kept_logsumexp(logits, ~alike | own) - logits.diagonal()
