"""Peak memory of a whole corpus at 1 and 10 times the size: read, filter, deduplicate, write, beside OpusFilter 3.3.1.

Real pairs of the mirror, nine rules (those of benchmarks/filtering.py without HTML tags) and exact duplicates; of the copies every
second one stands behind its number, so that half of the rows of the larger size are new. Both must keep the same rows. After that,
ours alone: the rows become a training set from which the sentences of Tatoeba's test are kept out. Prints peak memory of each step, the
interpreter included, and as its last line `ratio: <peer memory / our memory>` of the corpus at the larger size, start-up included.

    python benchmarks/corpus_memory.py --pairs 50000 --opusfilter /path/to/opusfilter
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from _common import Cost, machine, official_files, parser, versions
from _opusfilter import (
    LANGS,
    VERSION,
    by_crosslign,
    by_opusfilter,
    check_rows,
    chosen,
    lines_of,
    opusfilter,
    rules_of_peer,
    sides,
    step,
    write_copies,
)

SIZES = (1, 10)
RULES = "no_html"


def build(folder: Path, size: str) -> None:
    """Build the corpus with crosslign (what the measured command does)."""
    from crosslign.corpora.build import build_corpus

    steps = [{rule: options} for rule, options, _, _ in chosen(RULES)] + [{"exact_duplicate": {"compare": "text"}}]
    entry: Any = {"kind": "bitext", "reader": "moses", "langs": [*LANGS], "filters": steps}
    counts = build_corpus("c", entry, sides(folder, size), {}, folder / "corpus.parquet")
    (folder / "ours.count").write_text(str(counts["rows"]))


def keep_out(folder: Path) -> None:
    """Make a training set of the corpus without the sentences of Tatoeba's test (what the measured command does)."""
    from crosslign.corpora import EVALUATIONS, Given
    from crosslign.examples.build import build_examples
    from crosslign.files import write_rows

    official = {path.name: path for path in (official_files("tatoeba-v1") / "tatoeba-v1").glob("tatoeba.deu-eng.*")}
    write_rows(folder / "texts.parquet", EVALUATIONS.get("tatoeba")(Given(official, {}, "tatoeba", ["deu"], None, 42)).texts, "texts")
    entry = {"builder": "parallel_pairs", "from": ["c"], "langs": ["en", "de"], "pairs": ["en-de"], "decontaminate": ["tatoeba"]}
    counts = build_examples(
        "x", entry, {"c": folder / "corpus.parquet"}, {"tatoeba": folder / "texts.parquet"}, {}, folder / "examples.parquet"
    )
    (folder / "ours.count").write_text(str(counts["rows"]))


def ours(folder: Path, *arguments: str) -> tuple[Cost, int]:
    """Return what one of our steps takes, and how many rows it leaves."""
    cost = by_crosslign(__file__, str(folder), *arguments)
    return cost, int((folder / "ours.count").read_text())


def run(folder: Path, peer: Path, size: int) -> dict[str, tuple[Cost, int]]:
    """Return what each step takes at one size, and how many rows it leaves."""
    steps = [
        step("filter", str(size), "kept", folder, filters=rules_of_peer(RULES)),
        step("remove_duplicates", "kept", "peer", folder),
    ]
    cost = by_opusfilter(peer, folder, steps)
    found = {"OpusFilter": (cost, lines_of(folder / "peer.en"))}
    return found | {"ours": ours(folder, "build", str(size)), "ours, evaluation text kept out": ours(folder, "keep_out", str(size))}


def main() -> None:
    """Run the comparison."""
    command = parser(__doc__)
    command.add_argument("--pairs", type=int, default=50_000, help="pairs of the smaller size")
    command.add_argument("--opusfilter", help="an installed opusfilter command")
    command.add_argument("--run", nargs=3, metavar=("FOLDER", "STEP", "SIZE"), help=argparse.SUPPRESS)
    args = command.parse_args()
    if args.run:
        folder, step, size = Path(args.run[0]), args.run[1], args.run[2]
        build(folder, size) if step == "build" else keep_out(folder)
        return
    folder = Path(tempfile.mkdtemp(prefix="crosslign-corpus-memory-"))
    try:
        write_copies(folder, 100, 1)
        peer = opusfilter(folder, args.opusfilter)
        start = run(folder, peer, 1)
        print(f"machine: {machine()}; {versions('pyarrow', 'xxhash')}, OpusFilter {VERSION}; start-up: " + memory_of(start))
        for size in SIZES:
            lines = write_copies(folder, args.pairs, size)
            found = run(folder, peer, size)
            check_rows(folder, "corpus.parquet", "peer")
            print(f"{size:>2} x, {found['ours'][1]:,} of {lines:,} rows kept: " + memory_of(found), flush=True)
        print(f"ratio: {found['OpusFilter'][0].memory / found['ours'][0].memory:.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def memory_of(found: dict[str, tuple[Cost, int]]) -> str:
    """Return the peak memory and processor time of each step in words."""
    return "; ".join(f"{name} {cost.memory:.0f} MiB, {cost.processor:.1f} s" for name, (cost, _) in found.items())


if __name__ == "__main__":
    main()
