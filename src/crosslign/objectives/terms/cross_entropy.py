"""Supervised classification: sentences, pairs, choices, multi-label (docs/papers/moco_bert.md, docs/papers/scl.md, docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import torch
from torch import Generator, Tensor
from torch.nn import functional

from crosslign.console import number_of
from crosslign.devices import sent
from crosslign.errors import InputError
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import (
    Batch,
    Input,
    Loss,
    Part,
    Shape,
    both_sides,
    class_of,
    equal,
    kept_logsumexp,
    labels_of,
    mean_of,
    part_of,
    share_of,
    supervised,
    text_codes,
)
from crosslign.objectives.parts.classification import Classification
from crosslign.objectives.views import Encode, row_input
from crosslign.options import Layer, Pooling, Schema, Share

Form = Literal["single_label", "multiple_choice", "multi_label"]


@OBJECTIVES.register(version=1)
class CrossEntropy:
    """Cross-entropy of a classification part's logits, over the rows whose `supervised` is not false.

    - form `single_label`: `L_i = −log softmax(W x_i)[y_i]`, mean over the rows.
    - form `multiple_choice`: rows of one `group` are the choices of one question, label 1 marks the right one; the softmax is
      over the choices that the batch holds, mean over the questions that it holds the right choice of. The part has 1 label;
      the trainer's batches hold whole questions (`whole_groups`).
    - form `multi_label`: `label` lists a row's classes; binary cross-entropy of sigmoids, mean over rows and classes.

    SCL prints its cross-entropy as y·log(1 − ŷ) + ŷ·log(1 − y); that is not one, and is not implemented.

    Inputs: `row` [B, d] (encode `pair`: a cross-encoder's first token, or a single sentence), or `a`, `b` [B, d] (encode
    `sentences`: the part's features are `concat`, as in MoCo-BERT's NLI term).

    Args:
        part: name of a `classification` part.
        form: `single_label`, `multiple_choice` (rows of one group are a question's choices) or `multi_label` (a row has several classes).
        encode: a row's two sentences together (`pair`), or each by itself (`sentences`).
        label_smoothing: share of the label spread over all classes (single_label).
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
    """

    shape: Shape = "labelled"

    def __init__(
        self,
        part: Annotated[str, Schema(part=["classification"])],
        form: Form = "single_label",
        encode: Encode = "pair",
        label_smoothing: Share = 0.0,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
    ) -> None:
        self.part, self.label_smoothing, self.pooling, self.layer = part, label_smoothing, pooling, layer
        self.form, self.encode = form, encode
        self.whole_groups = form == "multiple_choice"

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return the rows, or both sides."""
        if self.encode == "pair":
            return {"row": row_input(batch)}
        return both_sides(batch)

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the mean over rows or questions; 0 where none is supervised."""
        part = part_of(parts, self.part, Classification)
        if (part.features == "concat") != (self.encode == "sentences"):
            what = f"the part {self.part!r} has features: {part.features}, but the term has encode: {self.encode}"
            raise InputError(
                what, where="cross_entropy", do="Use features: concat with encode: sentences, and features: vector with encode: pair"
            )
        logits = part(part.combine(vectors["a"], vectors["b"]) if self.encode == "sentences" else vectors["row"])
        rows = supervised(batch).nonzero().squeeze(1)
        kept = Batch(
            [batch.ids[i] for i in rows.tolist()],
            {name: [column[i] for i in rows.tolist()] for name, column in batch.columns.items()},
            batch.step,
        )
        if not len(kept):
            return Loss(0 * logits.sum())
        own = logits[sent(rows, logits.device)]
        losses, right = getattr(self, f"_{self.form}")(own, kept)
        logged = {"accuracy": mean_of(right), **_predictions(own, kept, self.form)}
        return Loss(losses.mean() if len(losses) else 0 * logits.sum(), logged)

    def _single_label(self, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        _check(class_of(batch).tolist(), logits.shape[1])
        classes = class_of(batch, logits.device)
        losses = functional.cross_entropy(logits, classes, reduction="none", label_smoothing=self.label_smoothing)
        return losses, logits.argmax(1) == classes

    def _multiple_choice(self, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        if logits.shape[1] != 1:
            raise InputError("a multiple choice needs a part with one label", where="cross_entropy", why=f"it has {logits.shape[1]}")
        groups = batch.columns.get("group") or []
        if not groups or None in groups:
            raise InputError("rows of a multiple choice need a group", where="cross_entropy", do="Give the question's id as `group`")
        (codes,) = text_codes(groups, device=logits.device)
        right = sent((class_of(batch) == 1).nonzero().squeeze(1), logits.device)
        scores, together = logits.squeeze(1), equal(codes, codes)[right]
        rows = scores.expand(len(right), -1)
        best = rows.masked_fill(~together, -torch.inf).argmax(1) if len(rows) else rows.new_zeros(0)
        return kept_logsumexp(rows, together) - scores[right], best == right

    def _multi_label(self, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        wanted = torch.zeros(logits.shape, dtype=logits.dtype)  # on the CPU: row by row on a GPU each would wait for it
        for i, label in enumerate(labels_of(batch)):
            _check(label or [], logits.shape[1])
            wanted[i, [int(number) for number in label or []]] = 1
        wanted = sent(wanted, logits.device)
        losses = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none").mean(1)
        return losses, (logits > 0) == (wanted > 0)


def _check(classes: Sequence[float], count: int) -> None:
    for number in classes:
        if not 0 <= number < count or number % 1:
            raise InputError(f"there is no class {number}", where="cross_entropy", why=f"the part has {number_of(count, 'label')}, from 0")


def _predictions(logits: Tensor, batch: Batch, form: str) -> dict[str, float | Tensor]:
    """Return the share of the class that is predicted most, and `constant`.

    `constant` is 1 where all rows have one prediction although their labels differ, or equal scores for all choices.
    """
    detached = logits.detach()
    if form == "multiple_choice":
        return {"constant": (detached == detached[0]).all().float() if len(logits) > 1 else 0.0}
    predicted = detached.argmax(1, keepdim=True) if form == "single_label" else detached > 0
    differ = len({tuple(sorted(label or [])) for label in labels_of(batch)}) > 1
    constant = (predicted == predicted[0]).all().float() if differ else 0.0
    counts = equal(torch.arange(logits.shape[1], device=logits.device), detached.argmax(1)).sum(1)
    return {"largest_class": share_of(counts.max(), len(logits)), "constant": constant}
