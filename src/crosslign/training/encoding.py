"""One step's sentences through the model: grouped, sorted by length, in micro-batches, over ranks (gradient caching); what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crosslign.devices import distinct_rows, sent
from crosslign.encoders.model import Member, Model
from crosslign.encoders.packed.training import PackedTraining, trains_packed
from crosslign.encoders.pooling import MASKED_TOKENS
from crosslign.encoders.tokens import Ids
from crosslign.errors import InputError
from crosslign.objectives.contract import Input, ids_of
from crosslign.training.draws import derive, seed_device
from crosslign.training.masking import Picked, masked_tokens
from crosslign.training.tokenised import Lookup

GroupKey = tuple[str, str, int, bool]
"""Member, pooling (`MASKED_TOKENS` of masked inputs), layer, and whether an input is a pair of texts."""
WITH_GRADIENT = 3
"""Forward passes that a forward and a backward pass take together: the backward pass multiplies by weights and by activations."""


@dataclass(frozen=True)
class Cost:
    """What was encoded, on all ranks together.

    Attributes:
        sentences: sentences, or pairs that are read as one text.
        tokens: their tokens, special ones included and padding left out.
        tokens_with_gradient: those of them that were encoded with gradient.
        flops: of the encoder's products, `WITH_GRADIENT` times those of a forward pass where there was a gradient, once elsewhere.
    """

    sentences: int = 0
    tokens: int = 0
    tokens_with_gradient: int = 0
    flops: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Return both together."""
        with_gradient = self.tokens_with_gradient + other.tokens_with_gradient
        return Cost(self.sentences + other.sentences, self.tokens + other.tokens, with_gradient, self.flops + other.flops)


def cost_of(member: Member, ids: Sequence[Ids], blocks: int, gradient: bool) -> Cost:
    """Return the cost of encoding sentences.

    A sentence of n tokens takes 2·n·W for the products with weights and 4·n²·d·L for those of attention: W weights in the blocks that
    are read, L of these, d the length of the states. Gradient caching encodes with gradient twice, to save memory: it counts once.

    Args:
        member: the encoder.
        ids: token ids of each sentence.
        blocks: blocks of the encoder that are read.
        gradient: whether a backward pass follows.
    """
    lengths = np.fromiter((len(one) for one in ids), np.float64, len(ids))
    weights = member.block_weights * blocks / member.blocks
    flops = float((2 * lengths * weights + 4 * lengths**2 * member.dimension * blocks).sum())
    tokens = int(lengths.sum())
    return Cost(len(ids), tokens, tokens if gradient else 0, flops * (WITH_GRADIENT if gradient else 1))


@dataclass(frozen=True)
class Settings:
    """What holds for every encoding of a run.

    Attributes:
        accelerator: of `accelerate`; device, autocast and ranks.
        seed: seed of the run.
        pooling, layer: of the readout, for inputs that name none.
        max_length: tokens of an input.
        prefix: text before each sentence.
        precision: fp32, bf16 or fp16, of the matrix products.
        kernels: whether the project's own kernels are used on a GPU: `off`, `auto`, `on`.
    """

    accelerator: Any
    seed: int
    pooling: str
    layer: int
    max_length: int
    prefix: str
    precision: str = "fp32"
    kernels: str = "off"
    _packs: WeakKeyDictionary[nn.Module, bool] = field(default_factory=WeakKeyDictionary, init=False, repr=False)

    def packs(self, backbone: nn.Module) -> bool:
        """Tell whether a backbone trains without padding: asked once a run, since looking at all its blocks takes a millisecond."""
        if backbone not in self._packs:
            self._packs[backbone] = trains_packed(backbone, self.precision, self.kernels)
        return self._packs[backbone]


@dataclass
class Group:
    """Sentences that one forward pass of one module can take together.

    Attributes:
        ids, segments: token ids, and segment numbers for pairs, of N sentences of all ranks.
        picked: of masked inputs, the places and former ids of each sentence's masked tokens, whose states are the vectors; else empty.
        leaf: float32 [N, d], or [masked tokens, d]: the vectors that the loss sees; its gradient goes back into the module.
    """

    member: str
    pooling: str
    layer: int
    module: nn.Module
    ids: list[Ids] = field(default_factory=list)
    segments: list[Ids] | None = None
    picked: list[Picked] = field(default_factory=list)
    leaf: Tensor = field(default_factory=lambda: torch.empty(0))

    def names(self, settings: Settings) -> tuple[str | int, ...]:
        """Return what names the group in the seed of its dropout."""
        return (self.member, self.pooling, *([self.layer] if self.layer != settings.layer else []))

    def vector_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which rows of `leaf` belong to these sentences: one each, or those of their masked tokens."""
        if not self.picked:
            return rows
        return np.concatenate([np.arange(self._ends[row] - len(self.picked[row].places), self._ends[row]) for row in rows.tolist()])

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum([len(picked.places) for picked in self.picked])

    @property
    def size(self) -> int:
        """Rows of `leaf`."""
        return int(self._ends[-1]) if self.picked else len(self.ids)

    def own_chunks(self, rank: int, world: int, size: int) -> list[NDArray[np.int64]]:
        """Return this rank's sentences in micro-batches of like length: every `world`-th of them, longest first."""
        lengths = np.fromiter((len(array) for array in self.ids), np.int64, len(self.ids))
        own = np.argsort(-lengths, kind="stable")[rank::world]
        return [own[i : i + size] for i in range(0, len(own), size)]


def _backward(vectors: Tensor, gradient: Tensor, rows: NDArray[np.int64]) -> None:
    torch.autograd.backward(vectors, gradient[sent(torch.from_numpy(rows), gradient.device)])


class Encoding:
    """The inputs of one batch, encoded with or without gradient.

    Vectors are computed by micro-batches. With several, the forward pass keeps no graph; the loss's gradient with respect
    to the vectors is stored, and each micro-batch is encoded again, with the same dropout, to take it in. With one, its
    graph is kept. Over ranks each encodes its share; all see all vectors and compute the same loss, so that each holds the
    gradient of its own share and the sum over ranks is that of the joint batch.

    Args:
        settings: what holds for the run.
        inputs: what to encode, by name.
        lookup: token ids of the batch's sentences and pairs; others are tokenised.
        module: gives the module that encodes for a member's name.
        model: the model, for languages and tokenizers.
        micro_batch: share of the sentences that a micro-batch takes, in (0, 1].
        draw: names the step and the batch in the seed of dropout.
    """

    def __init__(
        self,
        settings: Settings,
        inputs: Mapping[str, Input],
        lookup: Lookup,
        module: Callable[[str], nn.Module],
        model: Model,
        micro_batch: float,
        draw: Sequence[str | int],
    ) -> None:
        self._settings, self._model, self._module, self._draw = settings, model, module, tuple(draw)
        self._micro_batch = micro_batch
        self._groups: dict[GroupKey, Group] = {}
        self._masked = {name for name, item in inputs.items() if item.masked}
        self._places = {name: self._add(item, lookup) for name, item in inputs.items()}
        self._graphs: list[tuple[Group, NDArray[np.int64], Tensor]] = []

    def _add(self, item: Input, lookup: Lookup) -> list[tuple[GroupKey, int]]:
        """Put an input's sentences into their groups; return (group, place) of each."""
        pooling, layer, paired = item.pooling or self._settings.pooling, self._layer(item), item.pair_texts is not None
        if item.masked:
            pooling, layer = MASKED_TOKENS, -1
        members = [self._model.member_of(lang) for lang in item.langs]
        places: list[tuple[GroupKey, int]] = []
        unknown: dict[str, list[int]] = {}
        seconds = item.pair_texts if item.pair_texts is not None else [None] * len(item.texts)
        for i, (member, text, second) in enumerate(zip(members, item.texts, seconds, strict=True)):
            key = (member, pooling, layer, paired)
            if key not in self._groups:
                self._groups[key] = Group(member, pooling, layer, self._module(member), segments=[] if paired else None)
            group = self._groups[key]
            places.append((key, len(group.ids)))
            known = lookup.get((member, text, second))
            ids, segments = known or (np.empty(0, np.int32), None)
            group.ids.append(ids)
            if group.segments is not None:
                group.segments.append(segments if segments is not None else np.empty(0, np.int32))
            if known is None:
                unknown.setdefault(member, []).append(i)
        for member, rows in unknown.items():
            self._tokenise(member, item, rows, [places[i] for i in rows])
        if item.masked:
            self._mask(item.masked, places)
        return places

    def _mask(self, share: float, places: Sequence[tuple[GroupKey, int]]) -> None:
        """Mask tokens of sentences that were just put into their groups; all ranks draw alike."""
        draw = np.random.default_rng(derive(self._settings.seed, "mask", *self._draw, len(places)))
        for key, place in places:
            group = self._groups[key]
            group.ids[place], picked = masked_tokens(group.ids[place], self._model.member(key[0]), share, draw)
            group.picked.append(picked)

    def _layer(self, item: Input) -> int:
        """Return the layer that an input reads: its own; else the readout's, or the last under another pooling than the readout's."""
        if item.layer is not None:
            return item.layer
        return self._settings.layer if item.pooling is None else -1

    def _tokenise(self, member: str, item: Input, rows: Sequence[int], places: Sequence[tuple[GroupKey, int]]) -> None:
        seconds = [item.pair_texts[i] for i in rows] if item.pair_texts is not None else None
        texts = [self._settings.prefix + item.texts[i] for i in rows]
        tokens = self._model.member(member).tokenise(texts, seconds, self._settings.max_length)
        for i, (key, place) in enumerate(places):
            self._groups[key].ids[place] = tokens.ids[i]
            if tokens.segments is not None:
                self._groups[key].segments[place] = tokens.segments[i]  # type: ignore[index]

    def _forward(self, group: Group, rows: NDArray[np.int64], number: int) -> Tensor:
        accelerator = self._settings.accelerator
        names = (*self._draw, *group.names(self._settings), accelerator.process_index, number)
        seed_device(accelerator.device, derive(self._settings.seed, "dropout", *names))
        member: Any = group.module
        features = member.collate(group.ids, group.segments, rows)
        if group.picked:
            found = [(row, place) for row, i in enumerate(rows) for place in group.picked[i].places.tolist()]
            features["picked"] = sent(torch.tensor(found, dtype=torch.int64).reshape(-1, 2), accelerator.device)
        if self._settings.packs(member.backbone):
            lengths, blocks = np.array([len(group.ids[i]) for i in rows]), member.blocks_read(group.pooling, group.layer)
            packed = PackedTraining(member.backbone, self._settings.precision, blocks, lengths, self._settings.kernels)
            vectors: Tensor = member(features, group.pooling, group.layer, packed)
        else:
            with accelerator.autocast():
                vectors = member(features, group.pooling, group.layer)
        return vectors.float()

    def _chunks(self, group: Group) -> list[NDArray[np.int64]]:
        accelerator = self._settings.accelerator
        size = max(1, ceil(len(group.ids) * self._micro_batch))
        return group.own_chunks(accelerator.process_index, accelerator.num_processes, size)

    def vectors(self, gradient: bool) -> dict[str, Tensor]:
        """Encode, and return float32 vectors [n, d] by input name, joined over micro-batches and ranks.

        Args:
            gradient: whether `backward` will follow.
        """
        for group in self._groups.values():
            chunks = self._chunks(group)
            direct = gradient and len(chunks) == 1
            encoded = []
            with torch.set_grad_enabled(direct):
                for number, rows in enumerate(chunks):
                    encoded.append(self._forward(group, rows, number))
                    if direct:
                        self._graphs.append((group, rows, encoded[-1]))
            group.leaf = self._join(group, chunks, [e.detach() for e in encoded]).requires_grad_(gradient)
        return self._by_input()

    def _join(self, group: Group, chunks: Sequence[NDArray[np.int64]], encoded: Sequence[Tensor]) -> Tensor:
        """Put every rank's vectors into their rows: each adds its own to zeros, which is exact."""
        accelerator = self._settings.accelerator
        dimension = int(self._model.member(group.member).width(group.pooling))
        joint = torch.zeros(group.size, dimension, device=accelerator.device)
        with distinct_rows():
            for rows, vectors in zip(chunks, encoded, strict=True):
                joint.index_copy_(0, sent(torch.from_numpy(group.vector_rows(rows)), accelerator.device), vectors)
        return accelerator.reduce(joint, "sum") if accelerator.num_processes > 1 else joint

    def _by_input(self) -> dict[str, Tensor]:
        starts: dict[GroupKey, int] = {}
        total = 0
        for key, group in self._groups.items():
            starts[key] = total
            total += group.size
        dimensions = {group.leaf.shape[1] for group in self._groups.values()}
        if len(dimensions) > 1:
            raise InputError("the members' vectors differ in dimension", where="base", why=f"{sorted(dimensions)}")
        joint = torch.cat([group.leaf for group in self._groups.values()])
        found: dict[str, Tensor] = {}
        for name, places in self._places.items():
            rows = np.array([starts[key] + place for key, place in places])
            if name in self._masked:
                rows = np.concatenate([starts[key] + self._groups[key].vector_rows(np.array([place])) for key, place in places])
                ids = np.concatenate([self._groups[key].picked[place].ids for key, place in places])
                found[ids_of(name)] = sent(torch.from_numpy(ids.astype(np.int64)), joint.device)
            found[name] = joint.index_select(0, sent(torch.from_numpy(rows), joint.device))
        return found

    def cost(self, gradient: bool) -> Cost:
        """Return what encoding all inputs takes, on all ranks together; `gradient` tells whether `backward` follows."""
        found = Cost()
        for group in self._groups.values():
            member = self._model.member(group.member)
            found += cost_of(member, group.ids, member.blocks_read(group.pooling, group.layer), gradient)
        return found

    def read(self) -> dict[Tensor, NDArray[np.bool_]]:
        """Return which rows of embedding tables will have a sparse gradient, on any rank; none of one CPU, which can be asked."""
        accelerator, found = self._settings.accelerator, dict[Tensor, NDArray[np.bool_]]()
        if accelerator.device.type != "cuda" and accelerator.num_processes == 1:
            return found
        for group in self._groups.values():
            backbone: Any = group.module.backbone
            if self._settings.packs(backbone):
                table = backbone.embeddings.word_embeddings.weight
                rows = found.setdefault(table, np.zeros(len(table), np.bool_))
                rows[np.concatenate(group.ids)] = True
                rows[0] |= accelerator.device.type == "cuda"  # what fills a batch up
        return found

    @property
    def on_all_ranks(self) -> bool:
        """Whether every rank encodes some sentence of each group, so that all have gradients of the same parameters."""
        return all(len(group.ids) >= self._settings.accelerator.num_processes for group in self._groups.values())

    @property
    def holds_graphs(self) -> bool:
        """Whether what one micro-batch computed is kept for `backward`, which two would compute again."""
        return bool(self._graphs)

    def try_longest(self, gradient: bool) -> None:
        """Encode the longest micro-batch of each group, with a backward pass or without, to see whether it fits into memory."""
        for group in self._groups.values():
            with torch.set_grad_enabled(gradient):
                vectors = self._forward(group, self._chunks(group)[0], 0)
            if gradient:
                torch.autograd.backward(vectors, torch.ones_like(vectors))

    def backward(self, last: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Bring the gradient that the loss left at the vectors into the model's parameters.

        Args:
            last: entered for the last of this rank's passes through the graph.
        """
        direct = {id(group) for group, _, _ in self._graphs}
        again = [(g, rows, number) for g in self._groups.values() if id(g) not in direct for number, rows in enumerate(self._chunks(g))]
        passes: list[tuple[Group, NDArray[np.int64], Tensor | int]] = [*self._graphs, *again]
        asked = [(group, rows, known, group.leaf.grad) for group, rows, known in passes if group.leaf.grad is not None]
        for place, (group, rows, known, gradient) in enumerate(asked, 1):
            vectors = known if isinstance(known, Tensor) else self._forward(group, rows, known)
            with last() if place == len(asked) else nullcontext():
                _backward(vectors, gradient, group.vector_rows(rows))
        self._graphs.clear()
