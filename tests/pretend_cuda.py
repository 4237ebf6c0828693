"""A pretend CUDA device for machines without one, so that code for GPUs runs, with the right values, and its mistakes are seen.

Its tensors are those of `pretend_tensor`, which torch's own factories and copies reach by Python kernels at the dispatch key of CUDA.
Backward passes, autocast, scalers, draws and `accelerate` see a CUDA device. What it cannot show: kernels and their rounding, speed,
streams, and memory that runs out.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pretend_memory
import pytest
import torch
from pretend_tensor import aten, compute, draws

CUDA, PRIVATE = 1, 20
"""Numbers of device types in torch's registry of device guards."""

POSSIBLE = torch.version.cuda is None and torch.version.hip is None and sys.platform == "linux" and hasattr(torch._C, "_acc")
"""Whether this torch can be made to pretend: its builds for GPUs have kernels of their own where the pretend ones go."""

_kept = []
"""What torch points at, for as long as the process lives."""


def add_device_guard():
    """Let torch's own code ask a CUDA device for its streams. Its threads of backward passes start with the first: it must be there."""
    if _kept or not POSSIBLE:
        return

    class Guard(torch._C._acc.DeviceGuard):
        def type_(self):
            return torch._C._autograd.DeviceType.CUDA

    _kept.append(Guard())
    torch._C._acc.register_python_privateuseone_device_guard(_kept[0])
    guards = (ctypes.c_void_p * 21).in_dll(_library("c10"), "_ZN3c104impl26device_guard_impl_registryE")
    guards[CUDA], guards[PRIVATE] = guards[PRIVATE], None


def _library(name):
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / f"lib{name}.so"))


@contextmanager
def _accelerator():
    """Let torch's own code find that CUDA was built in: put a table of methods of which that one says so before its hooks."""
    find = _library("torch_cpu")._ZN2at6detail12getCUDAHooksEv
    find.restype = ctypes.c_void_p
    hooks = ctypes.cast(find(), ctypes.POINTER(ctypes.c_void_p))
    before = hooks[0]
    words = ctypes.c_void_p * 98
    yes = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
    try:
        for place in range(4, 12):
            table = words.from_buffer_copy(words.from_address(before - 16))
            table[place] = yes
            hooks[0] = ctypes.addressof(table) + 16
            if torch._C._accelerator_getAccelerator() is not None:
                table[place + 2] = yes  # hasPrimaryContext stands behind isBuilt and isAvailable
                break
        yield
    finally:
        hooks[0] = before


class _Generator(torch.Generator):
    """A generator that says it is a GPU's."""

    device = torch.device("cuda", 0)


def _nothing(*args, **kwargs):
    """Do nothing, as calls about streams and memory may here."""


class _Stream:
    """A stream in which nothing waits."""

    device = torch.device("cuda", 0)
    cuda_stream = 0

    def __init__(self, *args, **kwargs):
        pass

    synchronize = wait_stream = wait_event = record = wait = __exit__ = _nothing

    def __enter__(self):
        return self

    def record_event(self, event=None):
        return event or _Stream()

    def query(self):
        return True

    def elapsed_time(self, other):
        return 1.0


def _empty(empty, *size, pin_memory=False, **options):
    """Make a tensor; all memory counts as pinned."""
    return empty(*size, **options)


def _torch_cuda(count):
    """Return what stands in torch.cuda while the pretend device is there."""
    properties = SimpleNamespace(name="pretend", total_memory=pretend_memory.TOTAL, major=9, minor=0, multi_processor_count=132)
    quiet = "empty_cache synchronize set_device init _lazy_init ipc_collect"
    return {
        **dict.fromkeys(quiet.split(), _nothing),
        **pretend_memory.functions(),
        **{name: (lambda *_: True) for name in ("is_available", "is_initialized")},
        **{name: (lambda *_: False) for name in ("_is_in_bad_fork", "is_current_stream_capturing")},
        **dict.fromkeys(("manual_seed", "manual_seed_all"), draws.seed),
        **{name: (lambda *_: _Stream()) for name in ("current_stream", "default_stream", "stream", "device")},
        "Stream": _Stream,
        "Event": _Stream,
        "device_count": lambda: count,
        "current_device": lambda: 0,
        "is_bf16_supported": lambda including_emulation=True: True,
        "get_device_name": lambda *_: properties.name,
        "get_device_properties": lambda *_: properties,
        "get_device_capability": lambda *_: (9, 0),
        "get_rng_state": lambda device=0: draws.generator(torch.device("cuda", device).index if isinstance(device, int) else 0).get_state(),
        "set_rng_state": lambda state, device=0: draws.generator(device if isinstance(device, int) else 0).set_state(state),
    }


@contextmanager
def pretend_cuda(monkeypatch, count=1):
    """Put a machine's pretend devices, `count` of them, where torch looks for its GPUs; where that cannot be, skip the test."""
    if not POSSIBLE:
        pytest.skip("there is no GPU, and to pretend one takes torch's build for CPUs, on Linux")
    import torch._dynamo  # it keeps a table of torch.cuda's functions as it finds them
    from accelerate.state import AcceleratorState, PartialState

    add_device_guard()

    draws.seed(0)
    pretend_memory.memory.start()
    for name, value in _torch_cuda(count).items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self, device=None: self)
    monkeypatch.setattr(torch, "empty", partial(_empty, torch.empty))
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)  # a parameter that moves becomes another class, and stays itself
    kernels, fallback = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
    kernels.impl("copy_", lambda *args, **kwargs: compute(aten.copy_.default, args, kwargs), "CUDA")
    fallback.fallback(lambda operation, *args, **kwargs: compute(operation, args, kwargs), "CUDA")
    PartialState._reset_state()
    AcceleratorState._reset_state()
    try:
        with _accelerator():
            yield
    finally:
        kernels._destroy()
        fallback._destroy()
        torch.__future__.set_swap_module_params_on_conversion(before)
        PartialState._reset_state()
        AcceleratorState._reset_state()
