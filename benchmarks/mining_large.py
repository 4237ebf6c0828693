"""One tile row of a large mining, on synthetic float16 vectors in memory-mapped files; the whole is extrapolated from it, and said so.

Writes two files of random-cluster vectors (4 GB each as it stands) into a folder, prepares both sides as `neighbours` does for sides
whose float32 copies do not fit, searches the first tile rows, and prints how long each part took and the memory of the process: its own,
and pages of the files, which the system takes back when it needs them.

    python benchmarks/mining_large.py --rows 2000000 --dim 1024 --folder /tmp/mining_large
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from _common import machine, parser, versions
from _mining import centres, memory_of

from crosslign.console import duration
from crosslign.mining.knn import product_dtype
from crosslign.mining.search import Search, Step
from crosslign.mining.side import SIZES, Side
from crosslign.mining.tiles import WIDTH
from crosslign.threads import limit_threads
from crosslign.vectors import blocks, open_vectors

CLUSTERS = 4096


def write_vectors(path: Path, rows: int, dim: int, seed: int) -> None:
    """Write unit vectors around random centres, float16 [rows, dim], unless the file is there."""
    if path.exists() and np.load(path, mmap_mode="r").shape == (rows, dim):
        return
    middle, rng = centres(CLUSTERS, dim), np.random.default_rng(seed)
    out = np.lib.format.open_memmap(path, "w+", np.float16, (rows, dim))
    for at in blocks(rows, 16_384):
        drawn = middle[rng.integers(0, CLUSTERS, at.stop - at.start)] + rng.standard_normal((at.stop - at.start, dim), dtype=np.float32)
        out[at] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    out.flush()


class _Clock:
    """Prints what a part took, in wall and processor time, and the memory after it."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def say(self, part: str) -> tuple[float, float]:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        print(f"{part}: {wall:.1f} s, {cpu:.1f} s of processor; {memory_of()}", flush=True)
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return wall, cpu


def main() -> None:
    """Prepare both sides, search some tile rows, extrapolate."""
    command = parser(__doc__)
    command.add_argument("--rows", type=int, default=2_000_000, help="vectors on each side")
    command.add_argument("--dim", type=int, default=1024)
    command.add_argument("--k", type=int, default=4)
    command.add_argument("--strips", type=int, default=2, help="tile rows that are measured; the last counts")
    command.add_argument("--threads", type=int, default=os.cpu_count())
    command.add_argument("--folder", type=Path, help="folder for the vectors, 8 GB at the usual size; nothing is measured without")
    args = command.parse_args()
    if args.folder is None:
        print("skipped: name a folder with room for the vectors, --folder")
        return
    limit_threads(args.threads)
    import torch

    torch.set_num_threads(args.threads)
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, seed in (("x", 1), ("y", 2)):
        write_vectors(args.folder / f"{name}.npy", args.rows, args.dim, seed)
    place, tile = torch.device("cpu"), SIZES["cpu"].tile
    clock = _Clock()
    x, y = (Side(open_vectors(args.folder / f"{name}.npy"), None, name, place, 0) for name in "xy")
    clock.say("sides checked and scaled")
    search = Search(x, y, (args.k, args.k), Step(product_dtype(place)), tile)
    once = [clock.say("bounds of both sides")]
    columns = list(blocks(y.n, tile[1]))
    copies = [search.y_copies.block(at, WIDTH) for at in columns]
    once.append(clock.say("copies of the targets"))
    buffer = torch.empty(tile[0] * tile[1], dtype=search.dtype)
    strips = []
    with torch.no_grad():
        for strip in list(blocks(x.n, tile[0]))[: args.strips]:
            search._strip(strip, columns, copies, buffer)
            strips.append(clock.say(f"tile row of {tile[0]} x {y.n:,}"))
        search.columns.resolve()
    once.append(clock.say("re-scoring of what waited for the columns"))
    print(f"machine: {machine()}; {versions('numpy', 'torch')}")
    print(f"task: {args.rows} x {args.rows} x {args.dim} float16 on disk, k = {args.k}, {args.threads} threads")
    rows = -(-x.n // tile[0])
    wall, cpu = (sum(part[at] for part in once) + strips[-1][at] * rows for at in (0, 1))
    print(f"extrapolated: {rows} tile rows as the last one, and the rest once: {duration(wall)}, {duration(cpu)} of processor")


if __name__ == "__main__":
    main()
