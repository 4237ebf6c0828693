"""Do the intervals of a calibrated mining hold the truth? Line-aligned vectors and sentences, gold hidden from the estimator.

    python benchmarks/mining_calibration.py --text x.npy y.npy x.txt y.txt --draws 100

Each draw plants some pairs, and makes two sides of a third of the others with their translations and two thirds without. Precision and
recall of the pairs above the threshold that is chosen for `--precision` are compared with their intervals. `--plants` takes four files of
another text.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from crosslign.mining.calibration import choose, curve, unlike
from crosslign.mining.knn import neighbours
from crosslign.mining.pairs import chosen_pairs
from crosslign.mining.planted import Sides, hide, neighbourhoods

Text = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def read(files: list[Path]) -> Text:
    """Return vectors of both sides and lengths of their sentences, each sentence once."""
    left, right = (file.read_text(encoding="utf-8").splitlines() for file in files[2:])
    first = [at for at, pair in enumerate(zip(left, right, strict=True)) if left.index(pair[0]) == right.index(pair[1]) == at]
    lengths = [np.array([len(side[at]) for at in first], dtype=np.float64) for side in (left, right)]
    return np.load(files[0])[first], np.load(files[1])[first], lengths[0], lengths[1]


def made(number: int = 1000, d: int = 24) -> Text:
    """Return random vectors of sentences and their translations, some nearer than others, and lengths."""
    rng = np.random.default_rng(0)
    meaning, apart = rng.standard_normal((number, d)), rng.uniform(0.2, 0.8, (number, 1))
    x, y = (meaning + apart * rng.standard_normal((number, d)) for _ in range(2))
    lengths = rng.integers(10, 100, number).astype(np.float64)
    return x.astype(np.float32), y.astype(np.float32), lengths, lengths


def draw(text: Text, other: Text | None, seed: int, plants: int, asked: float) -> tuple[bool, bool, bool, float] | None:
    """Return whether the intervals hold precision and recall, whether a warning was given, and the precision; None without a threshold."""
    rng, of = np.random.default_rng(seed), other or text
    order, planted = rng.permutation(len(text[0])), rng.permutation(len(of[0]))[:plants]
    if other is None:
        planted, order = order[:plants], order[plants:]
    both, *alone = np.array_split(order, 3)
    left, right = (rng.permutation(np.append(both, one)) for one in alone)
    x, y = text[0][left], text[1][right]
    near = neighbours(x, y, 4)
    pairs = chosen_pairs(near, "ratio", "max")
    found = hide(near, Sides(x, y, of[0], of[1], (planted, planted)), "ratio", "max", seed=seed)
    drawn = curve(pairs, (len(x), len(y)), found, "max", seed=seed)
    row = choose(drawn.records(), precision=asked)
    kinds = {
        "sources": (text[2][left], of[2][planted]),
        "targets": (text[3][right], of[3][planted]),
    } | neighbourhoods(near, found, float(drawn.translations[1]))
    if row is None:
        return None
    kept = pairs.take(pairs.scores >= row["threshold"])
    right_ones = int((left[kept.sources] == right[kept.targets]).sum())
    precision, recall = right_ones / len(kept), right_ones / len(both)
    held = [row[name][0] <= value <= row[name][2] for name, value in (("precision", precision), ("recall", recall))]
    return held[0], held[1], bool(unlike(kinds)), precision


def main() -> None:
    """Print how often the intervals held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", nargs=4, type=Path, metavar="FILE", help="x.npy y.npy x.txt y.txt (default: random vectors)")
    parser.add_argument("--plants", nargs=4, type=Path, metavar="FILE", help="another text to plant")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--number", type=int, default=200, help="plants of a draw")
    parser.add_argument("--precision", type=float, default=0.95)
    args = parser.parse_args()
    text, other = read(args.text) if args.text else made(), read(args.plants) if args.plants else None
    drawn = [draw(text, other, seed, args.number, args.precision) for seed in range(args.draws)]
    rows = np.array([one for one in drawn if one is not None], dtype=np.float64)
    if not len(rows):
        print(f"no draw reached precision {args.precision}")
        return
    precision, recall, warned, true = rows.mean(0)
    print(f"{len(rows)} of {args.draws} draws with a threshold: precision held {precision:.2f}, recall held {recall:.2f}")
    print(f"warned {warned:.2f}, mean true precision {true:.3f} (asked {args.precision})")


if __name__ == "__main__":
    main()
