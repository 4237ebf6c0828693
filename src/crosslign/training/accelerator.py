"""Device, precision and processes of a training, by `accelerate`."""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from typing import Any

import torch

from crosslign.devices import APPLE, computed_in, encoding_devices
from crosslign.memory import keep_freed_memory

PRECISIONS = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
"""Variable of cuBLAS: numbers and sizes of its workspaces."""
PATIENCE = timedelta(minutes=30)
"""How long a rank waits for the others, of which one scores dev data and writes checkpoints; sets are tokenised before
ranks start."""

log = logging.getLogger(__name__)


def own_device() -> list[int]:
    """Return the number of the device that this process trains on; none where there is no GPU."""
    return [int(os.environ.get("LOCAL_RANK", "0"))] if torch.cuda.is_available() else []


def _settle_products() -> None:
    """Let torch see that products are deterministic: once, at its first product, it looks at a variable of cuBLAS.

    While that variable is there, torch parses it at every product, which takes five times as long as starting the product itself (95 of
    120 µs, H100, torch 2.11). It stays where a user has set it. Each stream has a workspace of fixed size from torch, with it or without.
    """
    if WORKSPACE not in os.environ:
        os.environ[WORKSPACE] = ":4096:8"
        try:
            torch.mm(*torch.ones(2, 16, 16, device="cuda"))
        finally:
            del os.environ[WORKSPACE]


def start_accelerator(precision: str) -> Any:
    """Return `accelerate`'s Accelerator: device, autocast, ranks and the gradient scaler of fp16.

    Without a GPU fp16 becomes bf16, with a warning: CPUs have no fp16 training. On Apple's every precision becomes fp32, and on CPUs
    without products in bf16 this one.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import InitProcessGroupKwargs

    device = torch.device(encoding_devices()[0]).type
    gpu, apple = device == "cuda", device == APPLE
    if precision != "fp32" and apple:
        log.warning("training on an Apple GPU: using fp32 instead of %s", precision)
        precision = "fp32"
    if precision == "fp16" and not gpu:
        log.warning("training without a GPU: using bf16 instead of fp16")
        precision = "bf16"
    precision = computed_in(precision, device)
    AcceleratorState._reset_state()  # one process may train twice, in two precisions
    if not gpu:
        keep_freed_memory()
    else:
        _settle_products()
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    handlers = [InitProcessGroupKwargs(timeout=PATIENCE)]
    return Accelerator(cpu=not gpu and not apple, mixed_precision=PRECISIONS[precision], kwargs_handlers=handlers)
