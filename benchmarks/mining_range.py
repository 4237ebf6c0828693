"""One range of a large mining, as one job of `mine:` with `shards:` searches it; the whole is extrapolated from it, and said so.

Writes two files of unit vectors, float32, into a folder: random ones, of which a tenth have a translation on the other side, in any order.
A job searches the first range of the sources in all targets, in both directions, and keeps its state as the workflow's does. All
translations of the range must be found. The whole costs as many such jobs.

    python benchmarks/mining_range.py --rows 1000000 --dim 384 --parts 10 --folder /tmp/mining_range
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from _common import machine, parser, versions
from _mining import run

from crosslign.console import duration
from crosslign.mining.backends import BACKENDS
from crosslign.mining.lists import Neighbours, State
from crosslign.threads import limit_threads
from crosslign.vectors import blocks

PAIRED, NOISE = 0.1, 0.05
"""Share of the rows that have a translation, and how far these are apart in each dimension: cosine about 0.7 at 384."""


def write_vectors(folder: Path, rows: int, dim: int) -> np.ndarray:
    """Write both sides; return the target row of each source's translation, -1 where it has none: int64 [rows]."""
    rng = np.random.default_rng(0)
    paired, answers = rng.choice(rows, int(PAIRED * rows), replace=False), rng.permutation(rows)
    gold = np.full(rows, -1, dtype=np.int64)
    gold[paired] = answers[paired]
    sides = [np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, (rows, dim)) for name in "xy"]
    for at in blocks(rows, 16_384):
        first, second = (rng.standard_normal((at.stop - at.start, dim), dtype=np.float32) for _ in range(2))
        first /= np.linalg.norm(first, axis=1, keepdims=True)
        own = gold[at] >= 0
        second[own] = first[own] + NOISE * second[own]
        sides[0][at], sides[1][answers[at]] = first, second / np.linalg.norm(second, axis=1, keepdims=True)
    for side in sides:
        side.flush()
    return gold


def check(near: Neighbours, gold: np.ndarray) -> int:
    """Check that each translation of the range is nearest, from both sides; return how many there are."""
    own = gold[: len(near.forward_indices)]
    sources = np.flatnonzero(own >= 0)
    if (near.forward_indices[sources, 0] != own[sources]).any() or (near.backward_indices[own[sources], 0] != sources).any():
        raise SystemExit("a translation was not found")
    return len(sources)


def main() -> None:
    """Search one range, extrapolate."""
    command = parser(__doc__)
    command.add_argument("--rows", type=int, default=1_000_000, help="vectors on each side")
    command.add_argument("--dim", type=int, default=384)
    command.add_argument("--k", type=int, default=4)
    command.add_argument("--parts", type=int, default=10, help="ranges of the whole; the first is searched")
    command.add_argument("--threads", type=int, default=os.cpu_count())
    command.add_argument("--folder", type=Path, help="folder for the vectors, 3 GB at the usual size; nothing is measured without")
    args = command.parse_args()
    if args.folder is None:
        print("skipped: name a folder with room for the vectors, --folder")
        return
    limit_threads(args.threads)
    args.folder.mkdir(parents=True, exist_ok=True)
    gold = write_vectors(args.folder, args.rows, args.dim)
    x, y = (args.folder / f"{name}.npy" for name in "xy")
    state = State(args.folder / "state")
    search = BACKENDS.get("exact")
    found = run(lambda: search(x, y, args.k, devices=["cpu"], state=state, part=1, parts=args.parts))
    print(f"machine: {machine()}; {versions('numpy', 'torch')}")
    print(f"task: {args.rows} x {args.rows} x {args.dim} float32 on disk, k = {args.k}, {args.threads} threads, 1 range of {args.parts}")
    print(f"all {check(found.found, gold):,} translations of the range were found")
    print(f"the range: {duration(found.seconds)}, {duration(found.cpu)} of processor, {found.peak / 2**30:.2f} GiB at the highest")
    print(f"extrapolated: {args.parts} jobs, {duration(found.seconds * args.parts)}, {duration(found.cpu * args.parts)} of processor")


if __name__ == "__main__":
    main()
