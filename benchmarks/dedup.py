"""Exact deduplication, and a held-out set kept out, at 1, 10 and 100 times the size, beside OpusFilter 3.3.1: time, and how memory grows.

Real pairs of the folder that CROSSLIGN_MIRROR names, else of ../shared/mirror; copies are numbered, so that of the larger sizes half the
rows are new ones, half are repeated; every tenth real pair is held out. Both compare the text as it stands, read the same two files, and
must keep the same rows; the peer's `remove_duplicates` does either in a step of its own (`overlap` drops no duplicates).
Ours runs twice: as it is, and with room for 100,000 keys in memory, so that the rest waits on disk as it does in a corpus of more
than 250,000 rows. Prints times and peak memory net of start-up, and at the largest size `ratio of memory: <peer / ours>` and as its
last line `ratio: <peer / ours, processor time>`.

    python benchmarks/dedup.py --pairs 20000 --opusfilter /path/to/opusfilter
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

from _common import Cost, machine, official_files, parser, versions
from _opusfilter import (
    LANGS,
    VERSION,
    by_crosslign,
    by_opusfilter,
    check_rows,
    lines_of,
    opusfilter,
    sides,
    step,
    tatoeba,
    write_copies,
)

SIZES = (1, 10, 100)
FEW_KEYS = 100_000


def ours(folder: Path, size: str, keys: int) -> None:
    """Deduplicate with crosslign (what the measured command does)."""
    from crosslign.corpora import dedup
    from crosslign.corpora.build import build_corpus

    dedup.IN_MEMORY = keys or dedup.IN_MEMORY
    entry: Any = {"kind": "bitext", "reader": "moses", "langs": [*LANGS]}
    if not (folder / "held.parquet").exists():
        build_corpus("held", entry, sides(folder, "held"), {}, folder / "held.parquet")
    entry["filters"] = [{"exact_duplicate": {"compare": "text", "corpora": ["held"]}}]
    counts = build_corpus("c", entry, sides(folder, size), {"held": folder / "held.parquet"}, folder / "ours.parquet")
    (folder / "ours.count").write_text(str(counts["rows"]))


def run(folder: Path, peer: Path, size: int) -> dict[str, tuple[Cost, int]]:
    """Return what each takes at one size, and how many rows it keeps."""
    held = [str(path) for path in sides(folder, "held").values()]
    steps = [
        step("remove_duplicates", str(size), "unique", folder),
        step("remove_duplicates", "unique", "peer", folder, overlap=held),
    ]
    cost = by_opusfilter(peer, folder, steps)
    found = {"OpusFilter": (cost, lines_of(folder / "peer.en"))}
    for name, keys in (("ours", 0), (f"ours, {FEW_KEYS:,} keys in memory", FEW_KEYS)):
        cost = by_crosslign(__file__, str(folder), str(size), str(keys))
        found[name] = (cost, int((folder / "ours.count").read_text()))
        check_rows(folder, "ours.parquet", "peer")
    return found


def hold_out(folder: Path, pairs: int) -> None:
    """Write every tenth real pair as `held.en` and `held.de`."""
    real = list(islice(tatoeba(official_files("tatoeba-bilingual"), "deu"), 0, pairs, 10))
    for side, path in enumerate(sides(folder, "held").values()):
        path.write_text("".join(pair[side] + "\n" for pair in real), encoding="utf-8", newline="\n")


def main() -> None:
    """Run the comparison."""
    command = parser(__doc__)
    command.add_argument("--pairs", type=int, default=20_000, help="pairs of the smallest size")
    command.add_argument("--opusfilter", help="an installed opusfilter command")
    command.add_argument("--run", nargs=3, metavar=("FOLDER", "SIZE", "KEYS"), help=argparse.SUPPRESS)
    args = command.parse_args()
    if args.run:
        ours(Path(args.run[0]), args.run[1], int(args.run[2]))
        return
    folder = Path(tempfile.mkdtemp(prefix="crosslign-dedup-benchmark-"))
    try:
        hold_out(folder, args.pairs)
        write_copies(folder, 100, 1)
        peer = opusfilter(folder, args.opusfilter)
        start = {name: cost for name, (cost, _) in run(folder, peer, 1).items()}
        print(f"machine: {machine()}; {versions('pyarrow', 'xxhash')}, OpusFilter {VERSION}; net of a run on 100 pairs")
        for size in SIZES:
            lines = write_copies(folder, args.pairs, size)
            found = run(folder, peer, size)
            for name, (cost, kept) in found.items():
                memory, wall, processor = (getattr(cost, field) - getattr(start[name], field) for field in ("memory", "wall", "processor"))
                took = f"+{memory:.0f} MiB, {wall:.1f} s wall, {processor:.1f} s processor"
                print(f"{size:>3} x, {kept:,} of {lines:,} kept: {name}: {took}")
        for field, name in (("memory", "ratio of memory"), ("wall", "ratio of wall times"), ("processor", "ratio")):
            theirs, own = (getattr(found[who][0], field) - getattr(start[who], field) for who in ("OpusFilter", "ours"))
            print(f"{name}: {theirs / own:.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
