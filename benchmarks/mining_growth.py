"""How mining grows: 1, 2, 4 and 8 times the sentences on one side, time for a pair of sentences and peak memory.

The machine may be busy: times are those of the processor, one thread, the least of the repeats. Float32 copies are limited to 64 MiB,
as if the vectors were too large for memory. Draws docs/images/mining_growth.png; the last line is `ratio: <most / least time a pair>`.

    python benchmarks/mining_growth.py
"""

from __future__ import annotations

from pathlib import Path

from _common import machine, parser, versions
from _mining import Run, centres, run, vectors

from crosslign.mining.knn import neighbours
from crosslign.threads import limit_threads

KEEP = 64 << 20
FACTORS = (1, 2, 4, 8)


def draw(sizes: list[int], nanoseconds: list[float], mebibytes: list[float], title: str, out: Path) -> None:
    """Draw both curves over the number of sentences."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axis, values, label in zip(
        axes, (nanoseconds, mebibytes), ("processor time a pair (ns)", "peak memory above the vectors (MiB)"), strict=True
    ):
        axis.plot(sizes, values, marker="o", color="#1f5a8a")
        axis.set_xscale("log", base=2)
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.set_ylim(0, 1.4 * max(values))
        axis.set_xlabel("sentences on the growing side")
        axis.set_title(label, fontsize=10)
        axis.grid(alpha=0.3)
    figure.suptitle(title, fontsize=9)
    figure.savefig(out, dpi=110, metadata={"Software": None})


def main() -> None:
    """Measure and draw."""
    command = parser(__doc__)
    command.add_argument("--rows", type=int, default=24_576, help="sentences on the side that stays, and the least on the other")
    command.add_argument("--dim", type=int, default=384)
    command.add_argument("--k", type=int, default=4)
    command.add_argument("--repeats", type=int, default=2)
    command.add_argument("--image", type=Path, help="also draw docs/images/mining_growth.png, under this name")
    args = command.parse_args()
    limit_threads(1)
    import torch

    torch.set_num_threads(1)
    middle = centres(args.rows // 4, args.dim)
    fixed, growing = vectors(args.rows, args.dim, middle, 1), vectors(args.rows * FACTORS[-1], args.dim, middle, 2)
    neighbours(fixed[:2048], growing[:2048], args.k)
    sizes = [args.rows * factor for factor in FACTORS]
    runs: dict[int, list[Run]] = {size: [] for size in sizes}
    for _ in range(args.repeats):
        for size in sizes:
            runs[size].append(run(lambda size=size: neighbours(growing[:size], fixed, args.k, keep=KEEP)))  # type: ignore[misc]
    nanoseconds = [min(one.cpu for one in runs[size]) * 1e9 / (size * args.rows) for size in sizes]
    mebibytes = [max(one.peak for one in runs[size]) / 2**20 for size in sizes]
    title = f"{args.rows:,} sentences beside 1, 2, 4 and 8 times as many, {args.dim} dimensions, k = {args.k}, one thread"
    if args.image:
        draw(sizes, nanoseconds, mebibytes, title, args.image)
    print(f"machine: {machine()}; {versions('numpy', 'torch')}; seeds 1 and 2; {title}")
    for size, time, memory in zip(sizes, nanoseconds, mebibytes, strict=True):
        print(f"{args.rows} x {size} x {args.dim}: {time:.2f} ns a pair, {memory:.0f} MiB above the vectors")
    print(f"ratio: {max(nanoseconds) / min(nanoseconds):.2f}")


if __name__ == "__main__":
    main()
