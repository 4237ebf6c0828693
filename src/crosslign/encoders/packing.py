"""How a padded batch of BERT-like backbones is packed: its real tokens one behind another, the longest sentence first, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutputWithPooling


def first_position(backbone: Any) -> int:
    """Return the position number of a sentence's first token; RoBERTa's kin count on from the padding's number."""
    padding = backbone.embeddings.position_embeddings.padding_idx
    return 0 if padding is None else int(padding) + 1


class Packing:
    """Where the tokens of a batch lie that is padded at the right.

    Args:
        input_ids: int64 [n, t].
        attention_mask: int64 [n, t], 1 at real tokens; without it all are real.

    Attributes:
        lengths: int64 [n], tokens of each sentence, falling: the order in which they lie packed.
        places: int64 [tokens], where each packed token lies in the flattened batch.
        positions: int64 [tokens], its place in its sentence, from 0.
    """

    def __init__(self, input_ids: Tensor, attention_mask: Tensor | None) -> None:
        rows, width = self._shape = input_ids.shape
        lengths = torch.full((rows,), width) if attention_mask is None else attention_mask.sum(1)
        order = torch.argsort(lengths, descending=True, stable=True)
        self.lengths = lengths[order]
        self.positions = (torch.arange(width) < self.lengths[:, None]).nonzero()[:, 1]
        self.places = order.repeat_interleave(self.lengths) * width + self.positions

    def pack(self, values: Tensor) -> Tensor:
        """Return the real ones of values [n, t] as [tokens]."""
        return values.reshape(-1)[self.places]

    def pad(self, packed: Tensor) -> Tensor:
        """Return packed states [tokens, d] as [n, t, d], zero at padding."""
        rows, width = self._shape
        if len(self.places) < rows * width:
            packed = packed.new_zeros(rows * width, packed.shape[1]).index_copy_(0, self.places, packed)
        return packed.view(rows, width, -1)

    def output(
        self, states: Sequence[Tensor], pooler: Callable[[Tensor], Tensor] | None, output_hidden_states: bool
    ) -> BaseModelOutputWithPooling:
        """Return what the backbone returns, of the packed states of its layers; only the last is needed without hidden states."""
        last = self.pad(states[-1])
        return BaseModelOutputWithPooling(
            last_hidden_state=last,
            pooler_output=None if pooler is None else pooler(last),
            hidden_states=tuple(self.pad(state) for state in states) if output_hidden_states else None,
        )
