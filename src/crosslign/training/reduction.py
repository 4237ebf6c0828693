"""Gradients summed over ranks: embedding tables by the rows that were used, all others in buckets, as soon as they are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed, nn

from crosslign.objectives.contract import Part
from crosslign.training.optimiser import Read, summed

BUCKET_BYTES = 32 * 2**20
"""Of one sum over ranks: large enough for the full speed of the connection, small enough to begin early in the backward pass."""
NONE, ROWS, DENSE = 0, 1, 2
"""What a rank has as the gradient of a parameter: nothing, some rows of a table, or all of it."""


class Reduction:
    """Sums of the members' gradients over ranks; the parts' are equal everywhere, and their mean keeps the ranks in step.

    Every rank starts the same sums in the same order, also for parameters that its share of a batch did not reach. Where each rank has a
    share of every encoding, all know the kinds of gradients from their own, and the rows from the batch: nothing waits for a GPU.

    Args:
        accelerator: accelerate's, with several ranks.
        model: the encoder.
        parts: named state of the terms.
    """

    def __init__(self, accelerator: Any, model: nn.Module, parts: Mapping[str, Part]) -> None:
        self._ranks, self._device = int(accelerator.num_processes), accelerator.device
        self._parts = [p for part in parts.values() for p in part.parameters() if p.requires_grad]
        self._open = False
        embeddings = {m.weight for m in model.modules() if isinstance(m, nn.Embedding) and m.weight.requires_grad}
        self._tables = [p for p in model.parameters() if p in embeddings]
        # The last layers come first: their gradients are the first that a backward pass has.
        self._buckets = list(_buckets([p for p in model.parameters() if p.requires_grad and p not in embeddings][::-1]))
        self._bucket_of = {p: number for number, bucket in enumerate(self._buckets) for p in bucket}
        self._begin()
        for parameter in self._bucket_of:
            parameter.register_post_accumulate_grad_hook(self._ready)  # type: ignore[no-untyped-call]

    def _begin(self) -> None:
        self._missing = [len(bucket) for bucket in self._buckets]
        self._own: list[int] = []
        self._sums: list[distributed.Work | None] = []

    @contextmanager
    def last_pass(self) -> Iterator[None]:
        """Start the sum of each bucket once all its gradients are there: for the step's last backward pass, which adds to them last."""
        self._open = True
        try:
            yield
        finally:
            self._open = False

    def _ready(self, parameter: Tensor) -> None:
        if not self._open:
            return
        self._missing[self._bucket_of[parameter]] -= 1
        while len(self._sums) < len(self._buckets) and not self._missing[len(self._sums)]:
            self._start(self._buckets[len(self._sums)])

    def _start(self, bucket: Sequence[Tensor]) -> None:
        """Start the sum of a bucket's gradients, which become parts of one tensor."""
        self._own += [NONE if p.grad is None else DENSE for p in bucket]
        joint = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in bucket])
        for parameter, part in zip(bucket, torch.split(joint, [p.numel() for p in bucket]), strict=True):
            parameter.grad = part.view_as(parameter)
        self._sums.append(distributed.all_reduce(joint, async_op=True))

    def finish(self, read: Read, alike: bool) -> None:
        """Leave in every parameter the gradient of all ranks; none where no rank has one.

        Args:
            read: which rows of tables with sparse gradients any rank has read.
            alike: whether all ranks have gradients of the same parameters; else they ask each other, and the host waits.
        """
        for bucket in self._buckets[len(self._sums) :]:
            self._start(bucket)
        kinds = self._own + [NONE if p.grad is None else ROWS if p.grad.is_sparse else DENSE for p in self._tables]
        if not alike:
            known = torch.tensor(kinds, device=self._device)
            distributed.all_reduce(known, distributed.ReduceOp.MAX)
            kinds = known.tolist()
        for table, kind in zip(self._tables, kinds[len(self._own) :], strict=True):
            _sum_table(table, kind, read.get(table))
        for held in _buckets([p for p in self._parts if p.grad is not None]):
            joint = torch.cat([p.grad.reshape(-1) for p in held if p.grad is not None])
            distributed.all_reduce(joint)
            for parameter, part in zip(held, torch.split(joint / self._ranks, [p.numel() for p in held]), strict=True):
                parameter.grad = part.view_as(parameter)
        for work in self._sums:
            if work is not None:
                work.wait()
        for parameter, kind in zip((p for bucket in self._buckets for p in bucket), kinds[: len(self._own)], strict=True):
            if kind == NONE:
                parameter.grad = None
        self._begin()


def _sum_table(table: Tensor, kind: int, read: NDArray[np.bool_] | None) -> None:
    """Sum a table's gradient: of the rows that were read where each rank has some of them or none, else of all."""
    own = table.grad
    if kind == ROWS and read is not None:
        if own is None:
            none = torch.empty(1, 0, dtype=torch.int64, device=table.device)
            own = torch.sparse_coo_tensor(none, table.new_empty(0, table.shape[1]), table.shape, check_invariants=False)
        places, sums, _ = summed(own, read)
        distributed.all_reduce(sums)
        table.grad = torch.sparse_coo_tensor(places[None], sums, table.shape, check_invariants=False, is_coalesced=True)
    elif kind != NONE:
        own = torch.zeros_like(table) if own is None else own
        table.grad = own.to_dense() if own.is_sparse else own
        distributed.all_reduce(table.grad)


def _buckets(parameters: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Yield the parameters in buckets of one type and at most `BUCKET_BYTES`, or of one larger parameter."""
    bucket: list[Tensor] = []
    size = 0
    for parameter in parameters:
        if bucket and (parameter.dtype != bucket[0].dtype or size + parameter.nbytes > BUCKET_BYTES):
            yield bucket
            bucket, size = [], 0
        bucket.append(parameter)
        size += parameter.nbytes
    if bucket:
        yield bucket
