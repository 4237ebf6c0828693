"""Momentum copies of the members, and queues of the keys that they made (docs/papers/moco_bert.md, docs/papers/emma_x.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslign.devices import numbers_on
from crosslign.encoders.model import Member, Model
from crosslign.errors import InputError
from crosslign.languages import normalise
from crosslign.objectives import PARTS
from crosslign.objectives.contract import Part, unit
from crosslign.options import Positive, Schema, Share

QueueName = Annotated[str, Schema(part=["momentum_queue"])]
QueueInit = Literal["masked_empty", "random"]
Store = Literal["float32", "float16"]
STORES = {"float32": torch.float32, "float16": torch.float16}


@PARTS.register(version=1)
class MomentumQueue(Part):
    """One momentum copy per member, `θ_k ← m θ_k + (1 − m) θ_q` once a step, and one FIFO ring of normalised keys per member.

    Buffers of the members are copied. A step goes: queries → `before_keys` (the moving average, from the weights before this
    step's update) → keys → losses against the queue as it was, with `stage` for the new keys → `commit` enqueues them.
    With m = 0 the copies are the members themselves, which collapses. A trained system keeps neither copies nor rings,
    which take 2.5 GB at K = 409,600 and two members.

    Args:
        size: K, keys of each ring; of a batch larger than K the newest K stay.
        momentum: m, the share of the old value in the moving average.
        queue_init: `masked_empty`: a ring counts only what was written to it; `random`: it starts full of random unit vectors.
        key_dropout: encode keys in train mode, with dropout, as the MoCo code leaves its key encoder.
        langs: a ring for each of these languages instead of one per member.
        store: type that keys are kept in, float32 or float16.

    Attributes:
        ring: [rings, K, d]; `filled` and `pointer`, int64 [rings]: how many places count, and where the next key goes.
    """

    training_only = True
    ring: Tensor
    filled: Tensor
    pointer: Tensor

    def __init__(
        self,
        size: Positive,
        momentum: Share = 0.999,
        queue_init: QueueInit = "masked_empty",
        key_dropout: bool = True,
        langs: Sequence[str] | None = None,
        store: Store = "float32",
    ) -> None:
        super().__init__()
        self.size, self.momentum, self.key_dropout = size, momentum, key_dropout
        self.queue_init = queue_init
        self.store = STORES[store]
        self.langs = [normalise(lang) for lang in langs] if langs else None
        self._model: tuple[Model, ...] = ()  # a tuple, so that the model is not a sub-module of the part
        self._staged: list[tuple[str, Tensor, Tensor, dict[int, list[int]]]] = []
        self._on_host: tuple[list[int], list[int]] | None = None
        self.copies: dict[str, Member] = {}
        self._registered = nn.ModuleList()

    def attach(self, model: Model, seed: int) -> None:
        """Copy the members and make the rings."""
        self._model = (model,)
        self.names = self.langs or list(model.members)
        self.copies = {name: member.copied() for name, member in model.members.items()}
        self._registered = nn.ModuleList(self.copies.values()).to(model.device).requires_grad_(False)
        shape = (len(self.names), self.size, model.dimension)
        random = self.queue_init == "random"
        ring = torch.zeros(shape)
        if random:
            ring = normalize(torch.randn(shape, generator=torch.Generator().manual_seed(seed)), dim=-1)
        self.register_buffer("ring", ring.to(model.device, self.store))
        self.register_buffer("filled", torch.full((len(self.names),), self.size if random else 0, device=model.device))
        self.register_buffer("pointer", torch.zeros(len(self.names), dtype=torch.int64, device=model.device))

    def train(self, mode: bool = True) -> MomentumQueue:
        """Set train or evaluation mode; without `key_dropout` the copies stay in evaluation mode."""
        super().train(mode)
        if not self.key_dropout:
            self._registered.eval()
        return self

    def key_member(self, name: str) -> nn.Module | None:
        """Return the momentum copy of a member."""
        return self.copies.get(name)

    @torch.no_grad()
    def before_keys(self) -> None:
        """Move the copies towards the members; what a step that failed had staged is dropped."""
        self._staged.clear()
        for name, keys in self.copies.items():
            member = self._model[0].member(name)
            for key, query in zip(keys.parameters(), member.parameters(), strict=True):
                key.lerp_(query, 1 - self.momentum)
            for kept, buffer in zip(keys.buffers(), member.buffers(), strict=True):
                kept.copy_(buffer)

    def _load_from_state_dict(self, *given: Any, **options: Any) -> None:
        super()._load_from_state_dict(*given, **options)
        self._on_host = None

    def _counts(self) -> tuple[list[int], list[int]]:
        """Return `filled` and `pointer` as the host knows them: a GPU is asked for them once."""
        if self._on_host is None:
            self._on_host = self.filled.tolist(), self.pointer.tolist()
        return self._on_host

    @property
    def held(self) -> list[int]:
        """How many keys count in each ring."""
        return self._counts()[0]

    def rings_of(self, langs: Sequence[str]) -> dict[int, list[int]]:
        """Return the rows whose keys go into each ring, by the ring's number, rising, and the language of each row.

        Raises:
            InputError: no ring is for that language.
        """
        names = [normalise(lang) if self.langs else self._model[0].member_of(lang) for lang in langs]
        if unknown := sorted(set(names) - set(self.names)):
            raise InputError(f"no queue for {unknown[0]!r}", where="parts: momentum_queue: langs", why=f"queues: {self.names}")
        rings: dict[int, list[int]] = {}
        for row, name in enumerate(names):
            rings.setdefault(self.names.index(name), []).append(row)
        return dict(sorted(rings.items()))

    def keys(self, ring: int) -> Tensor:
        """Return the keys [n ≤ K, d] that count in a ring: a view, in the stored type."""
        return self.ring[ring, : self.held[ring]]

    def all_keys(self) -> Tensor:
        """Return the keys of all rings, copied: [n, d]."""
        return torch.cat([self.keys(ring) for ring in range(len(self.names))])

    def stage(self, name: str, keys: Tensor, langs: Sequence[str]) -> None:
        """Note keys [n, d] for `commit`, in train mode; the same vectors under the same name, noted by two terms, count once."""
        if not self.training:
            return
        given, noted = keys.detach(), [earlier for other, earlier, *_ in self._staged if other == name]
        if not any(given.shape == earlier.shape and given.data_ptr() == earlier.data_ptr() for earlier in noted):
            self._staged.append((name, given, normalize(unit(given).float(), dim=1), self.rings_of(langs)))

    @torch.no_grad()
    def commit(self, vectors: dict[str, Tensor]) -> None:
        """Enqueue what was staged."""
        for _, _, keys, rings in self._staged:
            for ring, rows in rings.items():
                self._enqueue(ring, keys[numbers_on(keys.device, rows)])
        self._staged.clear()

    def _enqueue(self, ring: int, keys: Tensor) -> None:
        (filled, pointer), count = self._counts(), len(keys)
        start = pointer[ring]
        skipped = max(0, count - self.size)
        places = torch.arange(start + skipped, start + count, device=self.ring.device) % self.size
        self.ring[ring, places] = keys[skipped:].to(self.ring.dtype)
        pointer[ring], filled[ring] = (start + count) % self.size, min(self.size, filled[ring] + count)
        self.pointer[ring].fill_(pointer[ring])
        self.filled[ring].fill_(filled[ring])
