"""Exact two-direction mining beside faiss: `neighbours` against IndexFlatIP searched once in each direction.

Both get the same unit vectors (random clusters), k, and threads, and take turns; results are compared. Prints machine facts, versions,
medians, the share of the measured float32 matrix-product peak, peak memory, and as its last line `ratio: <peer time / our time>`.

    python benchmarks/mining.py --rows 24000 --dim 768 --repeats 3 --threads 2
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.threads import limit_threads

TOLERANCE = 1e-6
"""Candidates whose scores differ by no more may be swapped: faiss sums in float32, ours are rounded once."""


def vectors(rows: int, dim: int, centres: np.ndarray, seed: int) -> np.ndarray:
    """Return unit vectors around random centres, float32 [rows, dim]."""
    rng = np.random.default_rng(seed)
    drawn = centres[rng.integers(0, len(centres), rows)] + rng.standard_normal((rows, dim), dtype=np.float32)
    unit: np.ndarray = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def machine() -> str:
    """Return the processor's name and the number of its cores."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}"


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the wall time of a call and what it returns."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def float32_peak(dim: int) -> float:
    """Return the best of five float32 matrix products, in floating-point operations a second."""
    import torch

    left, right = torch.randn(4096, dim), torch.randn(dim, 4096)
    return 2 * 4096 * 4096 * dim / min(timed(lambda: torch.mm(left, right))[0] for _ in range(5))


def check(ours: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]) -> int:
    """Check that scores agree, rank by rank, and indices wherever scores are farther apart than the tolerance; return the swaps."""
    (indices, scores), (their_indices, their_scores) = ours, theirs
    if np.abs(scores - their_scores).max() > TOLERANCE:
        raise SystemExit(f"scores differ by {np.abs(scores - their_scores).max():.2e}")
    other = indices[:, 0] != their_indices[:, 0]
    if other.any() and np.abs(scores[other, 0] - scores[other, min(1, scores.shape[1] - 1)]).max() > TOLERANCE:
        raise SystemExit("nearest neighbours differ")
    return int((indices != their_indices).sum())


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000, help="vectors on each side")
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    limit_threads(args.threads)

    import faiss
    import torch

    from crosslign.mining.knn import neighbours, product_dtype

    torch.set_num_threads(args.threads)
    faiss.omp_set_num_threads(args.threads)
    centres = np.random.default_rng(0).standard_normal((max(2, args.rows // 4), args.dim), dtype=np.float32)
    x, y = vectors(args.rows, args.dim, centres, 1), vectors(args.rows, args.dim, centres, 2)

    def peer() -> list[tuple[np.ndarray, np.ndarray]]:
        found = []
        for base, queries in ((y, x), (x, y)):
            index = faiss.IndexFlatIP(args.dim)
            index.add(base)
            scores, indices = index.search(queries, args.k)
            found.append((indices, scores))
        return found

    peak = float32_peak(args.dim)
    neighbours(x[:2048], y[:2048], args.k)
    times: dict[str, list[float]] = {"ours": [], "faiss": []}
    for _ in range(args.repeats):
        seconds, found = timed(lambda: neighbours(x, y, args.k))
        times["ours"].append(seconds)
        seconds, theirs = timed(peer)
        times["faiss"].append(seconds)
        print(f"ours {times['ours'][-1]:.3f} s   faiss {seconds:.3f} s", flush=True)
    swaps = check((found.forward_indices, found.forward_scores), theirs[0]) + check(
        (found.backward_indices, found.backward_scores), theirs[1]
    )

    ours, faiss_time = (statistics.median(times[name]) for name in ("ours", "faiss"))
    print(f"machine: {machine()}")
    print(f"versions: python {platform.python_version()}, numpy {np.__version__}, torch {torch.__version__}, faiss {faiss.__version__}")
    print(
        f"task: {args.rows} x {args.rows} x {args.dim}, k = {args.k}, {args.threads} threads, tiles in {product_dtype(torch.device('cpu'))}"
    )
    print(f"results: equal; {swaps} of {2 * args.rows * args.k} candidates swapped within {TOLERANCE}")
    once = 2 * args.rows**2 * args.dim / peak
    print(f"float32 peak: {peak / 1e9:.0f} GFLOP/s; one product of all pairs at this peak: {once:.2f} s")
    print(f"useful products as a share of that peak: ours {once / ours:.2f}, faiss {once / faiss_time:.2f}")
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    print(f"median: ours {ours:.3f} s, faiss {faiss_time:.3f} s")
    print(f"ratio: {faiss_time / ours:.2f}")


if __name__ == "__main__":
    main()
