"""What the mining benchmarks share: vectors, the machine's peak, memory of a call, and the check of results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _common import memory, timed

from crosslign.mining.lists import Neighbours

TOLERANCE, DIM = 1e-6, 768
"""Candidates whose scores differ by no more, up to so many dimensions, may be swapped: faiss sums in float32, ours are rounded once."""


def tolerance(dim: int) -> float:
    """Return `TOLERANCE` for vectors of a length: what float32 sums lose grows with it (1.2e-6 at 1,024 dimensions on an H100)."""
    return TOLERANCE * max(1.0, dim / DIM)


def vectors(rows: int, dim: int, centres: np.ndarray, seed: int) -> np.ndarray:
    """Return unit vectors around random centres, float32 [rows, dim]."""
    rng = np.random.default_rng(seed)
    drawn = centres[rng.integers(0, len(centres), rows)] + rng.standard_normal((rows, dim), dtype=np.float32)
    unit: np.ndarray = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def centres(number: int, dim: int) -> np.ndarray:
    """Return centres of clusters, float32 [number, dim]."""
    return np.random.default_rng(0).standard_normal((max(2, number), dim), dtype=np.float32)


def float32_peak(dim: int, device: str) -> float:
    """Return the best of five float32 matrix products without TF32, in floating-point operations a second."""
    import torch

    size = 4096 if device == "cpu" else 16384
    torch.backends.cuda.matmul.allow_tf32 = False
    left, right = torch.randn(size, dim, device=device), torch.randn(dim, size, device=device)

    def product() -> None:
        torch.mm(left, right)
        if device != "cpu":
            torch.cuda.synchronize()

    return 2 * size * size * dim / min(timed(product)[0] for _ in range(5))


def memory_of() -> str:
    """Return this process's memory: its own at present, mapped pages of files, and the highest sum of both."""
    own, files, highest = (memory(key) / 2**30 for key in ("RssAnon", "RssFile", "VmHWM"))
    return f"{own:.2f} GiB own, {files:.2f} GiB pages of files, {highest:.2f} GiB at the highest"


@dataclass(frozen=True)
class Run:
    """One call: wall seconds, processor seconds of all threads, bytes of memory at their highest above those before, and the result."""

    seconds: float
    cpu: float
    peak: int
    found: Any


def run(work: Callable[[], Any]) -> Run:
    """Measure a call; `peak` is 0 where the system does not tell."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what an earlier call freed is no memory of this one's
        Path("/proc/self/clear_refs").write_text("5")  # resets the highest resident size
        before = memory("VmRSS")
    except OSError:
        before = None
    seconds, cpu, found = timed(work)
    return Run(seconds, cpu, max(0, memory("VmHWM") - before) if before is not None else 0, found)


def check(ours: Neighbours, theirs: Neighbours, tolerance: float) -> int:
    """Check that scores agree, rank by rank, and that indices differ only between scores within the tolerance; return the swaps.

    Raises:
        SystemExit: a score or a neighbour differs.
    """
    swaps = 0
    for side in ("forward", "backward"):
        (indices, scores), (other, others) = (
            (getattr(found, f"{side}_indices"), getattr(found, f"{side}_scores")) for found in (ours, theirs)
        )
        if np.abs(scores - others).max() > tolerance:
            raise SystemExit(f"{side}: scores differ by {np.abs(scores - others).max():.2e}")
        # A neighbour that the other list lacks must be as good as the last of that list.
        lacking = ~(indices[:, :, None] == other[:, None, :]).any(2)
        if (scores[lacking] - np.broadcast_to(others[:, -1:], scores.shape)[lacking] > tolerance).any():
            raise SystemExit(f"{side}: nearest neighbours differ")
        swaps += int((indices != other).sum())
    return swaps
