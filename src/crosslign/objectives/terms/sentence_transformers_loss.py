"""A loss of sentence-transformers as a term: CoSENT, AnglE, triplets, Matryoshka, distillation by mean squared error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from torch import Generator, Tensor, nn

from crosslign.console import number_of
from crosslign.devices import sent
from crosslign.errors import InputError
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.borrowed import borrowed_loss
from crosslign.objectives.contract import Batch, Input, Loss, Part, Shape, both_sides, hard_negatives, part_of, side
from crosslign.objectives.parts.loss_weights import LossWeights
from crosslign.options import Layer, Pooling, Schema

WHERE = "sentence_transformers_loss"


@OBJECTIVES.register(version=1)
class SentenceTransformersLoss:
    """What a loss of sentence-transformers gives for the sides of a row, in its place: anchor, positive, hard negative.

    `MultipleNegativesRankingLoss` is InfoNCE of the term `infonce` at temperature 1/scale. Labels are the set's: grades for `CoSENTLoss`,
    classes for the batch-wise triplet losses, a teacher's vector for `MSELoss`.

    Inputs: `a`, `b` [B, d], and `c` [B, d] where every row has a hard negative; labelled sets without b columns: `a`.
    Source: the documentation of sentence-transformers, Losses.

    Args:
        loss: name of its class, such as `CoSENTLoss`; None where `part` has it.
        options: its keyword arguments, such as `scale`.
        part: name of a `loss_weights` part: for a loss with weights of its own.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
    """

    shape: Shape = "pairs"

    def __init__(
        self,
        loss: str | None = None,
        options: Mapping[str, Any] | None = None,
        part: Annotated[str, Schema(part=["loss_weights"])] | None = None,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
    ) -> None:
        if (loss is None) == (part is None):
            raise InputError("exactly one of `loss` and `part` is needed", where=WHERE, why=f"loss: {loss}, part: {part}")
        self.name, self.options, self.part, self.pooling, self.layer = loss, options or {}, part, pooling, layer
        self._built: nn.Module | None = None

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return the sides that the rows have.

        Raises:
            InputError: some rows have a hard negative and some have none.
        """
        columns = batch.columns
        alone = "label" in columns and not any(text is not None for text in columns.get("b_text") or [])
        if batch.with_negative and len(batch.with_negative) < len(batch):
            why = f"{len(batch.with_negative)} of {number_of(len(batch), 'row')} of the batch have one"
            raise InputError("this loss needs a hard negative in every row, or in no row", where=WHERE, why=why)
        return ({"a": side(batch, "a")} if alone else both_sides(batch)) | hard_negatives(batch)

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return what the loss gives."""
        sides = [vectors[name] for name in ("a", "b", "c") if name in vectors]
        made = part_of(parts, self.part, LossWeights).built if self.part else self._own(sides[0])
        target = None
        if (labels := batch.columns.get("label")) is not None:
            values = torch.tensor(list(labels)).squeeze(1)  # where they are vectors, as a teacher's, nothing changes
            target = sent(values.long() if bool((values == values.round()).all()) else values, sides[0].device)  # long: classes
        try:
            found = made([{"vectors": side} for side in sides], target)
        except (TypeError, ValueError, IndexError, AttributeError, AssertionError) as error:
            why = f"{type(error).__name__}: {error}"
            do = "Use a training set with the columns that the loss's documentation names"
            raise InputError(f"{type(made).__name__} cannot read these examples", where=f"row {batch.ids[0]}", why=why, do=do) from error
        return Loss(sum(found.values(), torch.zeros(()))) if isinstance(found, dict) else Loss(found)

    def _own(self, vectors: Tensor) -> nn.Module:
        if self._built is None:
            self._built = borrowed_loss(str(self.name), self.options, vectors.shape[1], vectors.device)
            if any(True for _ in self._built.parameters()):
                do = "Define a part of kind loss_weights for it, and name that part"
                raise InputError(f"{self.name} has trainable weights", where=WHERE, do=do)
        return self._built
