"""Masked language modelling, of one language or of a sentence and its translation (docs/papers/emma_x.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from torch import Generator, Tensor

from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import Batch, Input, Loss, Part, Shape, both_sides, ids_of, part_of, side
from crosslign.objectives.parts.language_model_head import LanguageModelHead
from crosslign.options import Gt, Lt, Schema


@OBJECTIVES.register(version=1)
class MaskedLanguageModel:
    """Cross-entropy of tokens that were masked, `L = −log softmax(E f(h_t) + c)[w_t]`, mean over the masked tokens of the batch.

    Of the tokens that are not special ones a share is drawn; 8 of 10 become the mask token, 1 a token drawn at random, 1 stays as it is.

    Inputs: the states [m, d] of the masked tokens of side a, or with `translation` of a and b read together; and their ids.
    Source: XLM-R (MLM); InfoXLM (TLM, `translation`: the second sentence goes on behind the first, in its code too, where Conneau and
    Lample 2019 number the positions of each by itself).

    Args:
        head: name of a `language_model_head` part.
        share: of the tokens that are masked.
        translation: read each sentence with its translation, so that a masked word may be read off the other side.
    """

    shape: Shape = "pairs"

    def __init__(
        self,
        head: Annotated[str, Schema(part=["language_model_head"])],
        share: Annotated[float, Gt(0), Lt(1)] = 0.15,
        translation: bool = False,
    ) -> None:
        self.head, self.share, self.translation = head, share, translation
        self._name = "masked_pair" if translation else "masked"

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return side a, or both sides as pairs, to be masked."""
        sides = both_sides(batch) if self.translation else {"a": side(batch, "a")}
        second = sides["b"].texts if self.translation else None
        return {self._name: Input(sides["a"].texts, sides["a"].langs, second, masked=self.share)}

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the mean over the masked tokens; 0 where the draw took none."""
        states, ids = vectors[self._name], vectors[ids_of(self._name)]
        if not len(ids):
            return Loss(0 * states.sum())
        return Loss(part_of(parts, self.head, LanguageModelHead).losses(states, ids).mean(), {"masked_tokens": float(len(ids))})
