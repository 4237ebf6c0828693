"""BERT-like backbones on packed batches: real tokens one behind another, the longest sentence first, and no padding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_outputs import BaseModelOutputWithPooling

from crosslign.devices import distinct_rows, sent
from crosslign.encoders.dropout import dropped

CLASSES = frozenset({"BertModel", "RobertaModel", "XLMRobertaModel", "CamembertModel"})
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
"""Types of the products on a CPU, by precision."""
BLOCKS = (32, 64, 128)
"""Tile lengths of the kernel for short sentences: each goes to the smallest that holds it."""


@dataclass(frozen=True)
class Layout:
    """Sentences of falling length.

    Attributes:
        starts: int32 [n + 1], the first token of each, and the number of all.
        longest: tokens of the first.
        classes: first sentence, number of sentences and tile length of those that share one, up to the largest of `BLOCKS`.
    """

    starts: Tensor
    longest: int
    classes: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, lengths: NDArray[np.int64], device: torch.device) -> Layout:
        """Lay out sentences of falling lengths, int64 [n ≥ 1]; what a kernel needs goes to its device."""
        starts = np.concatenate([[0], lengths.cumsum()])
        bounds = [int((lengths > block).sum()) for block in (*reversed(BLOCKS), 0)]
        pairs = zip(reversed(BLOCKS), pairwise(bounds), strict=True)
        classes = tuple((first, last - first, block) for block, (first, last) in pairs if last > first)
        return cls(sent(torch.from_numpy(starts.astype(np.int32)), device), int(lengths[0]), classes)


def is_plain(backbone: Any) -> bool:
    """Tell whether a backbone is the transformer of BERT, with nothing added by anybody."""
    if type(backbone).__name__ not in CLASSES or backbone.config.is_decoder or backbone.config.hidden_act != "gelu":
        return False
    return all(type(linear) is nn.Linear for layer in backbone.encoder.layer for group in products(layer) for linear in group)


def products(layer: Any) -> tuple[tuple[nn.Linear, ...], ...]:
    """Return the products of a block, in their order; those of one group have one input."""
    own = layer.attention.self
    return (own.query, own.key, own.value), (layer.attention.output.dense,), (layer.intermediate.dense,), (layer.output.dense,)


def first_position(backbone: Any) -> int:
    """Return the position number of a sentence's first token; RoBERTa's kin count on from the padding's number."""
    padding = backbone.embeddings.position_embeddings.padding_idx
    return 0 if padding is None else int(padding) + 1


class Packing:
    """Where the tokens of a batch lie that is padded at the right.

    Args:
        input_ids: int64 [n, t].
        attention_mask: int64 [n, t], 1 at real tokens; without it all are real.
        lengths: int64 [n], tokens of each sentence, where the caller knows them: a GPU need not be asked then.
        filled: gives the number of tokens that a batch of so many is filled up to, by sentences that nothing reads.

    Attributes:
        lengths: int64 of the CPU, tokens of each sentence, those that fill included, falling: the order in which they lie packed.
        places: int64 [tokens], where each packed token lies in the flattened batch, behind which those that fill have rows of their own.
        positions: int64 [tokens], its place in its sentence, from 0.
    """

    def __init__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        lengths: NDArray[np.int64] | None = None,
        filled: Callable[[int], int] = int,
    ) -> None:
        rows, width = input_ids.shape
        if lengths is None:
            lengths = np.full(rows, width) if attention_mask is None else attention_mask.sum(1).cpu().numpy()
        more, size = filled(tokens := int(lengths.sum())) - tokens, min(width, BLOCKS[0])
        lengths = np.concatenate([lengths, np.full(more // size, size), [more % size] if more % size else []]).astype(np.int64)
        self._rows, self._shape = rows, (len(lengths), width)
        order = np.argsort(-lengths, kind="stable")
        self.lengths = lengths[order]
        positions = (np.arange(width) < self.lengths[:, None]).nonzero()[1]
        self.places = sent(torch.from_numpy(order.repeat(self.lengths) * width + positions), input_ids.device)
        self.positions = sent(torch.from_numpy(positions), input_ids.device)

    def pack(self, values: Tensor) -> Tensor:
        """Return the real ones of values [n, t] as [tokens]."""
        rows, width = self._shape
        return functional.pad(values.reshape(-1), (0, (rows - self._rows) * width)).index_select(0, self.places)

    def pad(self, packed: Tensor) -> Tensor:
        """Return packed states [tokens, d] as [n, t, d], zero at padding."""
        rows, width = self._shape
        if len(self.places) < rows * width:
            with distinct_rows():
                packed = packed.new_zeros(rows * width, packed.shape[1]).index_copy_(0, self.places, packed)
        return packed.view(rows, width, -1).narrow(0, 0, self._rows)

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


class Packed(ABC):
    """A form of a backbone that computes on real tokens alone; it takes and gives what the backbone does.

    Args:
        backbone: a model of BERT's kin.
        blocks: how many of its blocks are computed, where an inner layer is read; None for all.
        lengths: of the batch's sentences, see `Packing`.
    """

    def __init__(self, backbone: Any, blocks: int | None = None, lengths: NDArray[np.int64] | None = None) -> None:
        self.backbone = backbone
        self.lengths = lengths
        self.first = first_position(backbone)
        self.computed = list(backbone.encoder.layer)[:blocks]
        self.pooler = backbone.pooler if len(self.computed) == len(backbone.encoder.layer) else None

    def filled(self, tokens: int) -> int:
        """Return how many tokens a batch of so many is to have; the same on a CPU."""
        return tokens

    @abstractmethod
    def blocks(self, lengths: NDArray[np.int64]) -> Iterator[Callable[[Tensor], Tensor]]:
        """Yield the blocks, float32 [tokens, d] to the same, for sentences of falling lengths, int64 [n], that lie packed."""

    def _embedded(self, ids: Tensor, positions: Tensor, types: Tensor | None) -> Tensor:
        tables = self.backbone.embeddings
        kinds, words = tables.token_type_embeddings, tables.word_embeddings.weight
        # Few of its rows have a gradient: a sparse one, which the optimiser takes as it is.
        states = functional.embedding(ids, words, sparse=words.requires_grad) + tables.position_embeddings(positions + self.first)
        states = states + (kinds.weight.select(0, 0) if types is None else kinds(types))
        return dropped(tables.LayerNorm(states), tables.dropout)

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> BaseModelOutputWithPooling:
        """Encode a batch that is padded at the right: int64 [n, t] each; states are float32 [n, t, d], zero at padding."""
        packing = Packing(input_ids, attention_mask, self.lengths, self.filled)
        types = None if token_type_ids is None else packing.pack(token_type_ids)
        states = [self._embedded(packing.pack(input_ids), packing.positions, types)]
        for block in self.blocks(packing.lengths):
            states.append(block(states[-1]))
            if not output_hidden_states:
                del states[0]
        return packing.output(states, self.pooler, output_hidden_states)
