"""Near-duplicates beside datasketch's MinHash and LSH index, and beside rensa's as its own README uses it: same texts, shingles, threshold.

English verses of the quick start's Bible, some of which follow again with one word left out, one doubled or two exchanged. Both keep a
text unless one kept before has a Jaccard similarity of `--threshold` or more of their character 5-grams; all verify candidates exactly,
so that none drops a text wrongly, and each may miss a pair with a probability of some thousandths. The texts that are kept must
agree but for 0.5 %. Each runs in a process of its own, in turns. Prints machine, versions, seed, medians net of start-up, the ratio to
rensa, and as its last line `ratio: <datasketch / ours, processor time>`.

datasketch goes into a throw-away virtual environment, unless `--python` names an interpreter that has it.

    python benchmarks/near_duplicates.py --texts 20000
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from pathlib import Path

from _common import Cost, machine, measured, parser, peer, verses, versions

VERSION = "2.0.0"
SEED, SIZE = 42, 5
PEER = """
import json, sys
from pathlib import Path
plains, threshold = json.loads(Path(sys.argv[1]).read_text()), float(sys.argv[2])
{sketches}
sets, kept = {{}}, []
for number, text in enumerate(plains):
    own = {{text[start : start + 5] for start in range(max(1, len(text) - 4))}}
    sketch = sketched(own)
    if not any(len(own & sets[other]) >= threshold * len(own | sets[other]) for other in index.query(sketch)):
        index.insert(number, sketch)
        sets[number] = own
        kept.append(number)
print(json.dumps(kept))
"""
SKETCHES = {
    "datasketch": """
from datasketch import MinHash, MinHashLSH
index = MinHashLSH(threshold=threshold, num_perm=128, weights=(0.1, 0.9))
def sketched(grams):
    sketch = MinHash(num_perm=128)
    sketch.update_batch([gram.encode() for gram in grams])
    return sketch
""",
    "rensa": """
from rensa import RMinHash, RMinHashLSH
index = RMinHashLSH(threshold=threshold, num_perm=128, num_bands=32)
def sketched(grams):
    sketch = RMinHash(num_perm=128, seed=42)
    sketch.update(list(grams))
    return sketch
""",
}


def varied(folder: Path, count: int) -> list[str]:
    """Return verses; of each fifth one a copy with a small change stands behind it."""
    draw, found = random.Random(SEED), []
    for number, (text,) in enumerate(verses(folder, ["en"], count, SEED)):
        found.append(text)
        words = text.split()
        if number % 5 == 0 and len(words) > 3:
            at = draw.randrange(len(words) - 1)
            kinds = (
                words[:at] + words[at + 1 :],
                [*words[: at + 1], *words[at:]],
                [*words[:at], words[at + 1], words[at], *words[at + 2 :]],
            )
            found.append(" ".join(draw.choice(kinds)))
    return found[:count]


def ours(path: Path, threshold: float) -> None:
    """Print the numbers of the texts that are kept (what the measured command does)."""
    from crosslign.corpora.near_duplicates import NearIndex

    texts = json.loads(path.read_text())
    new = NearIndex(threshold, SIZE).insert_new(texts, [None] * len(texts))
    print(json.dumps([number for number, kept in enumerate(new.tolist()) if kept]))


def kept_by(cost: Cost) -> set[int]:
    """Return the texts that a side keeps."""
    return set(json.loads(cost.out.splitlines()[-1]))


def compare(folder: Path, args: argparse.Namespace) -> None:
    """Run all in turns, compare what they keep, and print."""
    from crosslign.corpora.near_duplicates import plain

    texts = [plain(text) for text in varied(args.folder or folder, args.texts)]
    python = args.python or peer(folder, f"datasketch=={VERSION}", "python", "--python")
    commands = {"datasketch": [python, str(folder / "datasketch.py.txt")], "rensa": [sys.executable, str(folder / "rensa.py.txt")]}
    for who, (_, script) in commands.items():
        Path(script).write_text(PEER.format(sketches=SKETCHES[who]))
    commands["ours"] = [sys.executable, __file__, "--run"]
    for name, part in (("few", texts[:50]), ("all", texts)):
        (folder / f"{name}.json").write_text(json.dumps(part))
    costs: dict[tuple[str, str], list[Cost]] = {}
    for _ in range(args.repeats):
        for who, command in commands.items():
            for name in ("few", "all"):
                given = [*command, str(folder / f"{name}.json"), str(args.threshold)]
                costs.setdefault((who, name), []).append(measured(given, OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1"))
    kept = {who: kept_by(costs[who, "all"][0]) for who in commands}
    print(f"{machine()}; {versions('rensa', 'numpy')}, datasketch {VERSION}; seed {SEED}")
    print(f"{len(texts):,} texts, threshold {args.threshold}; kept: {', '.join(f'{who} {len(found):,}' for who, found in kept.items())}")
    took = {}
    for who in commands:
        if len(kept["ours"] ^ kept[who]) > 0.005 * len(texts) or len(kept["ours"]) == len(texts):
            raise SystemExit(f"{who} keeps different texts")
        few, many = (
            [statistics.median(getattr(cost, field) for cost in costs[who, name]) for field in ("wall", "processor")]
            for name in ("few", "all")
        )
        took[who] = many[1] - few[1]
        print(f"{who}: {many[0] - few[0]:.2f} s wall, {took[who]:.2f} s processor")
    print(f"ratio to rensa: {took['rensa'] / took['ours']:.2f}")
    print(f"ratio: {took['datasketch'] / took['ours']:.2f}")


def main() -> None:
    """Compare, or run our side."""
    command = parser(__doc__)
    command.add_argument("--texts", type=int, default=20_000)
    command.add_argument("--threshold", type=float, default=0.8)
    command.add_argument("--repeats", type=int, default=3)
    command.add_argument("--folder", type=Path, help="where the verses' package lies, or is put")
    command.add_argument("--python", help="an interpreter that has datasketch")
    command.add_argument("--run", nargs=2, metavar=("FILE", "THRESHOLD"), help=argparse.SUPPRESS)
    args = command.parse_args()
    if args.run:
        ours(Path(args.run[0]), float(args.run[1]))
        return
    with tempfile.TemporaryDirectory(prefix="crosslign-near-duplicates-") as temporary:
        compare(Path(temporary), args)


if __name__ == "__main__":
    main()
