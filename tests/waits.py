"""Calls for which a host waits until a GPU has done what it was given: of a real one as torch tells, of a pretend one by its operations."""

from __future__ import annotations

import traceback
import warnings
from contextlib import contextmanager

import pretend_cuda
import pretend_tensor
import torch
from torch import Tensor

aten = torch.ops.aten
ASKING = {
    aten._local_scalar_dense,
    aten.nonzero,
    aten.masked_select,
    aten._unique2,
    aten.unique_dim,
    aten.unique_consecutive,
    aten._coalesce,
    aten.bincount,
    aten.equal,
    aten.is_nonzero,
    aten._linalg_eigh,
    aten._linalg_svd,
}
"""Operations whose result, or its size, the host asks a GPU for."""
INDEXED = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_, aten._unsafe_index}


def _tensors(value):
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _copied(packet, args, kwargs):
    """Tell whether a host waits for a copy: one between devices, unless it need not, and leaves from memory that is pinned."""
    source = list(_tensors(args))[-1]
    to = torch.device(kwargs.get("device") or next(_tensors(args)).device).type
    if (to == "cuda") == (source.device.type == "cuda"):
        return False
    free = kwargs.get("non_blocking", False) or (packet is aten.copy_ and len(args) > 2 and args[2])
    return not free or (to == "cuda" and not getattr(source, "pinned", False))


def _waits(operation, args, kwargs):
    packet = operation.overloadpacket
    if packet in (aten._to_copy, aten.copy_):
        return _copied(packet, args, kwargs)
    if not any(tensor.device.type == "cuda" for tensor in _tensors(args)):
        return False
    if packet is aten.repeat_interleave:
        return isinstance(args[-1], Tensor) and kwargs.get("output_size") is None
    if packet in INDEXED:
        return any(index.dtype in (torch.bool, torch.uint8) or index.device.type == "cpu" for index in _tensors(args[1]))
    return packet in ASKING


def _pinned(values, device=None):
    values = values.clone()
    values.pinned = True
    return values


class Waits:
    """Notes each wait: what it is for, and the line of the project that it is on."""

    def __init__(self, monkeypatch):
        self.seen = []
        self._real = not isinstance(torch.zeros(1, device="cuda"), pretend_tensor.PretendTensor)
        for owner, name in ((torch.cuda.Event, "synchronize"), (torch.cuda, "synchronize")):
            monkeypatch.setattr(owner, name, self._noted(getattr(owner, name), name))
        if self._real:
            return
        compute = pretend_tensor.compute

        def watched(operation, args, kwargs):
            if _waits(operation, args, kwargs):
                self._note(str(operation))
            return compute(operation, args, kwargs)

        for module in (pretend_tensor, pretend_cuda):
            monkeypatch.setattr(module, "compute", watched)
        monkeypatch.setattr(torch.Tensor, "pin_memory", _pinned)

    def _note(self, what):
        lines = [frame for frame in traceback.extract_stack() if "/src/crosslign/" in frame.filename]
        self.seen.append(f"{what} {lines[-1].filename}:{lines[-1].lineno}" if lines else what)

    def _noted(self, function, name):
        def noted(*given):
            self._note(name)
            return function(*given)

        return noted

    @contextmanager
    def counted(self):
        """Yield a list that has, at the end, the waits of the block."""
        self.seen, found = [], []
        if not self._real:
            yield found
            found += self.seen
            return
        torch.cuda.set_sync_debug_mode("warn")
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")
        found += [*self.seen, *(str(one.message) for one in said if "synchroniz" in str(one.message))]
