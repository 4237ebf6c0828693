"""Memory: telling a lack of it from any other failure, and keeping what was freed."""

from __future__ import annotations

import ctypes

import torch

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4

MESSAGES = (
    *("can't allocate memory", "not enough memory", "cannot allocate memory", "std::bad_alloc"),
    *("cuda error: out of memory", "cublas_status_alloc_failed"),  # of what torch's own allocator does not give out
)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an exception means that the device, or the machine, has too little memory."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(message in str(error).lower() for message in MESSAGES)


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
