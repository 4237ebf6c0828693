"""What the mining benchmarks share: vectors, clocks, peak memory, facts about the machine, and the check of results."""

from __future__ import annotations

import ctypes
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.mining import Neighbours

TOLERANCE = 1e-6
"""Candidates whose scores differ by no more may be swapped: faiss sums in float32, ours are rounded once."""


def vectors(rows: int, dim: int, centres: np.ndarray, seed: int) -> np.ndarray:
    """Return unit vectors around random centres, float32 [rows, dim]."""
    rng = np.random.default_rng(seed)
    drawn = centres[rng.integers(0, len(centres), rows)] + rng.standard_normal((rows, dim), dtype=np.float32)
    unit: np.ndarray = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def centres(number: int, dim: int) -> np.ndarray:
    """Return centres of clusters, float32 [number, dim]."""
    return np.random.default_rng(0).standard_normal((max(2, number), dim), dtype=np.float32)


def machine() -> str:
    """Return the processor's name, its cores and the present load; the GPU where there is one."""
    import torch

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    gpu = f"; {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}{gpu}"


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the wall time of a call and what it returns."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


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


def _status(key: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


def memory_of() -> str:
    """Return this process's memory: its own at present, mapped pages of files, and the highest sum of both."""
    own, files, highest = (_status(key) / 2**30 for key in ("RssAnon", "RssFile", "VmHWM"))
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
        before = _status("VmRSS")
    except OSError:
        before = None
    start = time.process_time()
    seconds, found = timed(work)
    cpu = time.process_time() - start
    return Run(seconds, cpu, max(0, _status("VmHWM") - before) if before is not None else 0, found)


def check(ours: Neighbours, theirs: Neighbours) -> int:
    """Check that scores agree, rank by rank, and that indices differ only between scores within the tolerance; return the swaps.

    Raises:
        SystemExit: a score or a neighbour differs.
    """
    swaps = 0
    for side in ("forward", "backward"):
        (indices, scores), (other, others) = (
            (getattr(found, f"{side}_indices"), getattr(found, f"{side}_scores")) for found in (ours, theirs)
        )
        if np.abs(scores - others).max() > TOLERANCE:
            raise SystemExit(f"{side}: scores differ by {np.abs(scores - others).max():.2e}")
        # A neighbour that the other list lacks must be as good as the last of that list.
        lacking = ~(indices[:, :, None] == other[:, None, :]).any(2)
        if (scores[lacking] - np.broadcast_to(others[:, -1:], scores.shape)[lacking] > TOLERANCE).any():
            raise SystemExit(f"{side}: nearest neighbours differ")
        swaps += int((indices != other).sum())
    return swaps
