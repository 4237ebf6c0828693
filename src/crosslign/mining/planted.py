"""Known pairs of translations, hidden among a user's two sides and found again by the retrieval that the user chose.

Each plant is hidden three times: with its translation, its source alone, and its target alone. What a retrieval does with a sentence whose
translation is there, and with one whose translation is not, is then known of sentences that nobody had to read.

A few are hidden at a time, so that the sides stay what they are; the search of the sides themselves is not repeated: best lists of all
rows together are those of the sides, with the plants merged in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosslign.errors import InputError
from crosslign.mining.calibration import Found
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours, entered, merged
from crosslign.mining.margin import Margin, Retrieval, mine

SHARE = 0.01
"""Share of the smaller side that is hidden at a time, at most: more make the sides denser with translations than they are."""
FEWEST = 2
"""Plants of one kind that are hidden at a time, at least."""
LEAST = 50
"""Plants without which nothing is estimated."""


@dataclass(frozen=True)
class Sides:
    """Vectors of the user's two sides and of the plants, row i of both plants' matrices being translations.

    Attributes:
        sources, targets, plant_sources, plant_targets: `.npy` files or matrices [n, d], as `neighbours` takes them.
        rows: rows of the plants' sources and of their targets that take part, in pairs.
    """

    sources: Path | np.ndarray
    targets: Path | np.ndarray
    plant_sources: Path | np.ndarray
    plant_targets: Path | np.ndarray
    rows: tuple[np.ndarray, np.ndarray]


def typical(scores: np.ndarray) -> np.ndarray:
    """Return the mean cosine of each row's neighbours but the nearest, which may be its translation: float64 [n]."""
    return np.asarray((scores[:, 1:] if scores.shape[1] > 1 else scores).mean(axis=1, dtype=np.float64))


def _joined(near: Neighbours, sides: Sides, sources: np.ndarray, targets: np.ndarray, device: str | Sequence[str]) -> Neighbours:
    """Return the neighbours of both sides with some plants behind the user's rows."""
    n, m = len(near.forward_indices), len(near.backward_indices)
    k, k_back = near.forward_indices.shape[1], near.backward_indices.shape[1]
    left, right = sides.rows[0][sources], sides.rows[1][targets]
    user_plants = neighbours(sides.sources, sides.plant_targets, k, k_back=k_back, target_rows=right, device=device)
    plants_user = neighbours(sides.plant_sources, sides.targets, k, k_back=k_back, source_rows=left, device=device)
    among = neighbours(sides.plant_sources, sides.plant_targets, k, k_back=k_back, source_rows=left, target_rows=right, device=device)
    forward = [
        entered((near.forward_indices, near.forward_scores), (user_plants.forward_indices + m, user_plants.forward_scores), k),
        merged([(plants_user.forward_indices, plants_user.forward_scores), (among.forward_indices + m, among.forward_scores)], k),
    ]
    backward = [
        entered((near.backward_indices, near.backward_scores), (plants_user.backward_indices + n, plants_user.backward_scores), k_back),
        merged([(user_plants.backward_indices, user_plants.backward_scores), (among.backward_indices + n, among.backward_scores)], k_back),
    ]
    parts = [np.concatenate([user, plant]) for lists in (forward, backward) for user, plant in zip(*lists, strict=True)]
    return Neighbours(parts[0], parts[1], parts[2], parts[3])


def _rounds(plants: int, smaller: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield plants that are hidden together: as pairs, as lone sources, as lone targets; each plant is in each of them once."""
    size = max(FEWEST, int(SHARE * smaller))
    chunks = np.array_split(rng.permutation(plants), max(3, -(-plants // size)))
    for number in range(len(chunks)):
        yield chunks[number], chunks[(number + 1) % len(chunks)], chunks[(number + 2) % len(chunks)]


def _highest(items: np.ndarray, scores: np.ndarray, number: int) -> np.ndarray:
    """Return the highest score of each item, -inf where it has none: float64 [number]."""
    best = np.full(number, -np.inf)
    np.maximum.at(best, items, scores)
    return best


def hide(
    near: Neighbours, sides: Sides, margin: Margin, retrieval: Retrieval, *, seed: int = 42, device: str | Sequence[str] = "cpu"
) -> Found:
    """Hide plants and find them.

    Args:
        near: nearest neighbours of the user's two sides.
        sides: vectors.
        margin, retrieval: as `mine` takes them.
        seed: of which plants are hidden together.
        device: as `neighbours` takes it.

    Raises:
        InputError: fewer than 50 plants.
    """
    n, m, plants = len(near.forward_indices), len(near.backward_indices), len(sides.rows[0])
    if plants < LEAST:
        do = "Name more pairs that are translations of each other and are in neither side"
        raise InputError(f"only {plants} planted pairs", where="calibration", why=f"at least {LEAST} are needed", do=do)
    found = {name: np.full(plants, -np.inf) for name in Found.__dataclass_fields__}
    for paired, lone_sources, lone_targets in _rounds(plants, min(n, m), np.random.default_rng(seed)):
        sources, targets = np.append(paired, lone_sources), np.append(paired, lone_targets)
        joined = _joined(near, sides, sources, targets, device)
        pairs = mine(joined, margin, retrieval)
        right = (pairs.sources >= n) & (pairs.sources - n == pairs.targets - m) & (pairs.sources < n + len(paired))
        for side, rows, own, lone in (
            ("source", sources, pairs.sources - n, lone_sources),
            ("target", targets, pairs.targets - m, lone_targets),
        ):
            planted = own >= 0
            wrong = _highest(own[planted & ~right], pairs.scores[planted & ~right], len(rows))
            found[f"{side}_wrong"][paired], found[f"lone_{side}"][lone] = np.split(wrong, [len(paired)])
        found["right"][paired] = _highest(pairs.sources[right] - n, pairs.scores[right], len(paired))
        for side, near_plants, lone in (
            ("source", joined.forward_scores[n:], lone_sources),
            ("target", joined.backward_scores[m:], lone_targets),
        ):
            found[f"paired_near_{side}"][paired], found[f"near_{side}"][lone] = np.split(typical(near_plants), [len(paired)])
    return Found(**found)


def neighbourhoods(near: Neighbours, found: Found, translations: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return what `typical` is of the sides' sentences and of plants in the same state, by name, as `unlike` takes it.

    Args:
        near: nearest neighbours of the user's two sides.
        found: what became of the plants.
        translations: sentences of a side that have a translation in the other, as estimated.
    """
    scores = {"source": near.forward_scores, "target": near.backward_scores}
    return {
        f"neighbourhood of the {side}s": (typical(own), found.neighbourhood(side, translations / len(own))) for side, own in scores.items()
    }
