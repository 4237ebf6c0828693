"""Peak memory of a whole corpus at 1 and 10 times the size: read, filter, deduplicate, write, beside OpusFilter 3.3.1.

Real pairs of the mirror, nine rules (those of benchmarks/filtering.py without HTML tags) and exact duplicates; of the copies every
second one stands behind its number, so that half of the rows of the larger size are new. Both must keep equally many rows. After that,
ours alone: the rows become a training set from which the sentences of Tatoeba's test are kept out. Prints peak memory of each step, the
interpreter included, and as its last line `ratio: <peer memory / our memory>` of the corpus at the larger size, start-up included.

    python benchmarks/corpus_memory.py --pairs 50000 --opusfilter /path/to/opusfilter
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from filtering import VERSION, Cost, chosen, measured, opusfilter, tatoeba
from filtering import mirror as real_text

SIZES = (1, 10)
RULES = "no_html"


def write_pairs(folder: Path, pairs: int, size: int) -> int:
    """Write `<size>.en` and `<size>.de`: `size` copies of the pairs, every second one behind its number; return the lines."""
    real = [pair for pair, _ in zip(tatoeba(real_text(), "deu"), range(pairs), strict=False)]
    for side, lang in enumerate(("en", "de")):
        with (folder / f"{size}.{lang}").open("w", encoding="utf-8", newline="\n") as file:
            for copy in range(size):
                mark = f"{copy} " if copy % 2 else ""
                file.writelines(f"{mark}{pair[side]}\n" for pair in real)
    return len(real) * size


def build(folder: Path, size: str) -> None:
    """Build the corpus with crosslign (what the measured command does)."""
    from crosslign.corpora.build import build_corpus

    steps = [{rule: options} for rule, options, _, _ in chosen(RULES)] + [{"exact_duplicate": {"compare": "text"}}]
    entry = {"kind": "bitext", "reader": "moses", "langs": ["en", "de"], "filters": steps}
    files = {f"{size}.{lang}": folder / f"{size}.{lang}" for lang in ("en", "de")}
    counts = build_corpus("c", entry, files, {}, folder / "corpus.parquet")
    (folder / "ours.count").write_text(str(counts["rows"]))


def keep_out(folder: Path) -> None:
    """Make a training set of the corpus without the sentences of Tatoeba's test (what the measured command does)."""
    from crosslign.corpora import EVALUATIONS
    from crosslign.examples.build import build_examples
    from crosslign.files import write_rows

    official = {path.name: path for path in (real_text() / "tatoeba-v1").glob("tatoeba.deu-eng.*")}
    write_rows(folder / "texts.parquet", EVALUATIONS.get("tatoeba")(official, {}, "tatoeba", ["deu"], None, 42).texts, "texts")
    entry = {"builder": "parallel_pairs", "from": ["c"], "langs": ["en", "de"], "pairs": ["en-de"], "decontaminate": ["tatoeba"]}
    counts = build_examples(
        "x", entry, {"c": folder / "corpus.parquet"}, {"tatoeba": folder / "texts.parquet"}, {}, folder / "examples.parquet"
    )
    (folder / "ours.count").write_text(str(counts["rows"]))


def write_peer_config(folder: Path, size: int) -> Path:
    """Write OpusFilter's configuration; JSON is YAML."""
    sides = ("en", "de")
    rules = [{theirs: options} for _, _, theirs, options in chosen(RULES)]
    kept = [f"kept.{lang}" for lang in sides]
    steps = [
        {"type": "filter", "parameters": {"inputs": [str(folder / f"{size}.{lang}") for lang in sides], "outputs": kept, "filters": rules}},
        {"type": "remove_duplicates", "parameters": {"inputs": kept, "outputs": [f"peer.{lang}" for lang in sides]}},
    ]
    path = folder / "peer.yaml"
    path.write_text(json.dumps({"common": {"output_directory": str(folder)}, "steps": steps}), encoding="utf-8")
    return path


def ours(folder: Path, *arguments: str) -> tuple[Cost, int]:
    """Return what one of our steps takes, and how many rows it leaves."""
    cost = measured([sys.executable, __file__, "--run", str(folder), *arguments], folder)
    return cost, int((folder / "ours.count").read_text())


def run(folder: Path, peer: Path, size: int) -> dict[str, tuple[Cost, int]]:
    """Return what each step takes at one size, and how many rows it leaves."""
    cost = measured([str(peer), "--overwrite", str(write_peer_config(folder, size))], folder)
    with (folder / "peer.en").open("rb") as lines:
        found = {"OpusFilter": (cost, sum(1 for _ in lines))}
    return found | {"ours": ours(folder, "build", str(size)), "ours, evaluation text kept out": ours(folder, "keep_out", str(size))}


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=50_000, help="pairs of the smaller size")
    parser.add_argument("--opusfilter", help="an installed opusfilter command")
    parser.add_argument("--run", nargs=3, metavar=("FOLDER", "STEP", "SIZE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        folder, step, size = Path(args.run[0]), args.run[1], args.run[2]
        build(folder, size) if step == "build" else keep_out(folder)
        return
    folder = Path(tempfile.mkdtemp(prefix="crosslign-corpus-memory-"))
    try:
        write_pairs(folder, 100, 1)
        peer = opusfilter(folder, args.opusfilter)
        start = run(folder, peer, 1)
        print(f"machine: {platform.machine()}; OpusFilter {VERSION}; start-up: " + memory_of(start))
        for size in SIZES:
            lines = write_pairs(folder, args.pairs, size)
            found = run(folder, peer, size)
            if found["ours"][1] != found["OpusFilter"][1]:
                raise SystemExit(f"they keep different numbers of rows: {found}")
            print(f"{size:>2} x, {found['ours'][1]:,} of {lines:,} rows kept: " + memory_of(found), flush=True)
        print(f"ratio: {found['OpusFilter'][0].memory / found['ours'][0].memory:.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def memory_of(found: dict[str, tuple[Cost, int]]) -> str:
    """Return the peak memory and processor time of each step in words."""
    return "; ".join(f"{name} {cost.memory:.0f} MiB, {cost.processor:.1f} s" for name, (cost, _) in found.items())


if __name__ == "__main__":
    main()
