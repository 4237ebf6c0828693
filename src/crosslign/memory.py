"""Memory: telling a lack of it from any other failure, giving back what a failed step held, and keeping what was freed."""

from __future__ import annotations

import ctypes
import gc

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4

MESSAGES = ("out of memory", "allocate memory", "not enough memory", "bad_alloc", "status_alloc_failed")
"""Of errors that torch, its allocators and CUDA's libraries (`CUBLAS_STATUS_ALLOC_FAILED`) raise as RuntimeError."""


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an exception means that the device, or the machine, has too little memory."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(message in str(error).lower() for message in MESSAGES)


def free_memory() -> None:
    """Give back what a failed step held, once its exception is gone: CUDA's libraries get nothing of what torch keeps for later use."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def keep_freed_memory() -> None:
    """Let the C library keep freed blocks for the next step instead of giving them back to the system.

    glibc unmaps every large block that is freed, and the next step pays for it page by page: a tenth of the time of a
    training step on a CPU. Other C libraries are left as they are.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_MMAP_MAX, 0)
    mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
