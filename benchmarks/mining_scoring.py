"""From neighbours to F1, beside the loops of LASER's scripts: margins of all candidates, `max` retrieval, best threshold.

LASER takes each candidate's cosine anew from the vectors, one pair at a time, accepts pairs one by one, and walks over the sorted pairs for
the threshold; here that is written in loops, as docs/protocols.md says it. Both get the same neighbours, drawn at random around
a planted partner, and must choose the same pairs and threshold. Prints processor seconds and, as its last line, `ratio: <loops / ours>`.

    python benchmarks/mining_scoring.py --rows 414000 --dim 256
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from _common import machine, parser, timed, versions

from crosslign.mining.lists import Neighbours
from crosslign.mining.margin import Pairs, mine
from crosslign.mining.threshold import Extraction, best_threshold
from crosslign.tasks.scorers._mined import Split


def drawn(rows: int, dim: int, k: int) -> tuple[np.ndarray, np.ndarray, Neighbours]:
    """Return unit vectors of both sides, partners in the same row, and k neighbours of each row with their cosines, best first."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, dim), dtype=np.float32)
    y = x + rng.standard_normal((rows, dim), dtype=np.float32)
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    found: list[Any] = []
    for own, other in ((x, y), (y, x)):
        indices = rng.integers(0, rows, (rows, k))
        indices[:, 0] = np.arange(rows)
        scores = np.stack([np.einsum("ij,ij->i", own, other[indices[:, column]]) for column in range(k)], 1)
        order = np.argsort(-scores, axis=1, kind="stable")
        found += [np.take_along_axis(indices, order, 1), np.take_along_axis(scores, order, 1)]
    return x, y, Neighbours(*found)


def by_loops(x: np.ndarray, y: np.ndarray, near: Neighbours, gold: set[tuple[int, int]]) -> tuple[list[tuple[int, int]], float, float]:
    """Return accepted pairs, the best F1 and its threshold, one pair at a time."""
    f, b = near.forward_scores.mean(1), near.backward_scores.mean(1)
    pooled = []
    for own, other, indices, means, others, turned in (
        (x, y, near.forward_indices, f, b, False),
        (y, x, near.backward_indices, b, f, True),
    ):
        for row in range(len(own)):
            scores = [own[row].dot(other[at]) / ((means[row] + others[at]) / 2) for at in indices[row]]
            best = int(np.argmax(scores))
            pair = (row, int(indices[row, best]))
            pooled.append((float(scores[best]), *(pair[::-1] if turned else pair)))
    accepted: list[tuple[int, int]] = []
    kept: list[float] = []
    sources: set[int] = set()
    targets: set[int] = set()
    for score, source, target in sorted(pooled, key=lambda one: -one[0]):
        if source not in sources and target not in targets and score > 0:
            sources.add(source)
            targets.add(target)
            accepted.append((source, target))
            kept.append(score)
    best_f1, threshold, right = 0.0, float("inf"), 0
    for number, pair in enumerate(accepted, 1):
        right += pair in gold
        precision, recall = right / number, right / len(gold)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        if f1 > best_f1:
            best_f1, threshold = f1, (kept[number - 1] + kept[min(number, len(kept) - 1)]) / 2
    return accepted, best_f1, threshold


def by_us(near: Neighbours, split: Split) -> tuple[Pairs, Extraction]:
    """Return the same."""
    pairs = mine(near, "ratio", "max")
    return pairs, best_threshold(pairs.scores, split.is_gold(pairs.sources, pairs.targets), len(split.sources))


def main() -> None:
    """Let both take turns."""
    command = parser(__doc__)
    command.add_argument("--rows", type=int, default=100_000, help="sentences on each side; BUCC's German and English are about 414,000")
    command.add_argument("--dim", type=int, default=768)
    command.add_argument("--k", type=int, default=4)
    command.add_argument("--repeats", type=int, default=3)
    args = command.parse_args()
    x, y, near = drawn(args.rows, args.dim, args.k)
    partners = np.arange(0, args.rows, 2)
    gold = {(int(row), int(row)) for row in partners}
    split = Split(np.arange(args.rows), np.arange(args.rows), partners, partners)
    times: dict[str, list[float]] = {"loops": [], "ours": []}
    for _ in range(args.repeats):
        _, seconds, (accepted, f1, threshold) = timed(lambda: by_loops(x, y, near, gold))
        times["loops"].append(seconds)
        _, seconds, (pairs, best) = timed(lambda: by_us(near, split))
        times["ours"].append(seconds)
    # The loops' dot products are float32: a few pairs of nearly equal scores may be ranked the other way round.
    shared = len(set(accepted) & set(zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)))
    if shared < 0.9999 * len(accepted) or abs(f1 - best.f1) > 1e-4 or abs(threshold - best.threshold) > 1e-4:
        raise SystemExit(f"results differ: {shared} of {len(accepted)} pairs shared, F1 {f1} and {best.f1}")
    median = {name: statistics.median(of) for name, of in times.items()}
    print(f"machine: {machine()}; {versions('numpy')}")
    print(f"task: {args.rows} x {args.rows}, k = {args.k}, vectors of {args.dim}; {len(pairs)} pairs, F1 {best.f1:.4f} both ways")
    for name, seconds in median.items():
        print(f"{name}: {seconds:.3f} s of processor")
    print(f"ratio: {median['loops'] / median['ours']:.2f}")


if __name__ == "__main__":
    main()
