"""What devices can: products in bf16 on CPUs, and Apple's GPUs (`mps`), where `CROSSLIGN_DEVICE=mps` asks for them.

Apple's lack float64, and copies that a host may wait for. CUDA's devices are used by whoever is shown some (`crosslign.jobs.leases`);
Apple's are never leased, and nothing of this project has run on one yet: so they are asked for. Searches stay on the CPU, whose exact
scores are float64.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslign.errors import InputError, ResourceError
from crosslign.progress import ONLY_IN_FILE

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

VARIABLE = "CROSSLIGN_DEVICE"
APPLE = "mps"

log = logging.getLogger(__name__)


@cache
def computed_in(precision: str, device: str) -> str:
    """Return the precision that products of matrices have on a device: fp32 where it lacks tf32, or kernels for bf16.

    Only CUDA's devices have tf32. Of CPUs oneDNN has no kernels for bf16 on those without AVX-512, which take 65 times as long for a
    product in it as in fp32 (docs/computing.md). Warns once.

    Args:
        precision: fp32, tf32, bf16 or fp16.
        device: type of torch's device.
    """
    if precision == "tf32" and device != "cuda":
        log.warning("only NVIDIA GPUs support tf32: using fp32, which is more exact")
        return "fp32"
    if precision != "bf16" or device != "cpu":
        return precision
    import torch

    if torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported():  # type: ignore[no-untyped-call]
        return precision
    log.warning("this CPU does not support bf16: using fp32", extra=ONLY_IN_FILE)
    return "fp32"


@contextmanager
def distinct_rows() -> Iterator[None]:
    """Let rows be written in any order while the block runs: they are distinct, and a GPU need not sort them to be deterministic."""
    import torch

    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("default")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Have products of float32 on CUDA's devices be exact (`ieee`), or round their factors (`tf32`), and leave the process as it was."""
    import torch

    settings = torch.backends.cuda.matmul
    # Torch refuses to read the older `allow_tf32` in a process that has set the newer `fp32_precision`; this one can always be read.
    before, settings.fp32_precision = settings.fp32_precision, precision
    try:
        yield
    finally:
        settings.fp32_precision = before


def apple_gpu() -> bool:
    """Tell whether encoding and training are to use Apple's GPU.

    Raises:
        InputError: the variable names another device.
        ResourceError: it is asked for, and torch has none.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked not in ("", "cpu", APPLE):
        raise InputError(f"unknown device {asked!r}", where=VARIABLE, why=f"known: cpu, {APPLE}; CUDA_VISIBLE_DEVICES names others")
    if asked != APPLE:
        return False
    import torch

    if not torch.backends.mps.is_available():
        raise ResourceError("torch finds no Apple GPU", where=f"{VARIABLE}={APPLE}", do=f"Unset {VARIABLE} to use the CPU")
    return True


def all_devices() -> list[str]:
    """Return every GPU that this process is shown, in a job those that it leased, or else the CPU: what searches."""
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())] or ["cpu"]


def encoding_devices() -> list[str]:
    """Return what encodes and trains: `all_devices`, and in the CPU's place Apple's GPU where it is asked for."""
    found = all_devices()
    return [APPLE] if found == ["cpu"] and apple_gpu() else found


def wide(values: Tensor) -> Tensor:
    """Return values as float64, on the CPU where their device has no such numbers."""
    return (values.cpu() if values.device.type == APPLE else values).double()


def sent(values: Tensor, device: torch.device | str) -> Tensor:
    """Return values of the CPU on a device; to a GPU from pinned memory, so that nothing waits for what the GPU still does."""
    import torch

    if torch.device(device).type == "cuda" and torch.cuda.is_available():
        values = values.pin_memory()
    return values.to(device, non_blocking=True)


def numbers_on(device: torch.device | None, values: Sequence[Any] | NDArray[Any]) -> Tensor:
    """Return whole numbers that the host knows, int64, or truth values, bool, on a device (None: the CPU); nothing waits for it."""
    import torch

    found = torch.as_tensor(values, dtype=torch.bool if len(values) and isinstance(values[0], bool | np.bool_) else torch.int64)
    return found if device is None else sent(found, device)


class Fetched:
    """Numbers on their way from a device to the host, all in one copy, behind what the device was given before it.

    Args:
        tensors: of one device, of any types and shapes; they arrive as float64.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        import torch

        self._shapes = [tensor.shape for tensor in tensors]
        joint = torch.cat([wide(tensor.detach()).reshape(-1) for tensor in tensors])
        self._event = torch.cuda.Event() if joint.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._joint = joint.to("cpu", non_blocking=self._event is not None)
        if self._event is not None:
            self._event.record(torch.cuda.current_stream(joint.device))

    def values(self) -> list[Tensor]:
        """Return the tensors, on the CPU: the host waits for the copy, and for nothing that the device was given after it."""
        if self._event is not None:
            self._event.synchronize()
        import torch

        parts = torch.split(self._joint, [shape.numel() for shape in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]
