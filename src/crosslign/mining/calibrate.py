"""Planted pairs of a user's files: which take part, what became of them, and what that says, as one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosslign.files import read_rows
from crosslign.mining.calibration import curve, unlike
from crosslign.mining.lists import Neighbours
from crosslign.mining.margin import Margin, Retrieval
from crosslign.mining.pairs import chosen_pairs
from crosslign.mining.planted import Sides, hide, neighbourhoods
from crosslign.paths import MINED_SIDES

MOST = 10_000
"""Plants that are hidden at most, evenly spread over their files: more say little more, and cost a search each."""


def usable(plants: tuple[pa.Table, pa.Table], sides: tuple[pa.Array, pa.Array]) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, int]]:
    """Choose the pairs that can be hidden: both lines have text, neither sentence is there twice or stands in its side already.

    Args:
        plants: rows of kind `texts` of the two files, `text_id` the line.
        sides: sentences of the user's two sides.

    Returns:
        Rows of both, and counts: given, repeated, in_the_sides, used.
    """
    lines = [table["text_id"].to_pylist() for table in plants]
    rows = [{line: row for row, line in enumerate(side)} for side in lines]
    both = [(row, rows[1][line]) for line, row in rows[0].items() if line in rows[1]]
    texts = [table["text"].to_pylist() for table in plants]
    there = [
        set(pc.filter(table["text"], pc.is_in(table["text"], value_set=side)).to_pylist())
        for table, side in zip(plants, sides, strict=True)
    ]
    seen: tuple[set[str], set[str]] = (set(), set())
    counts = {"given": len(both), "repeated": 0, "in_the_sides": 0}
    used = []
    for pair in both:
        sentences = [texts[side][row] for side, row in enumerate(pair)]
        if any(sentence in known for sentence, known in zip(sentences, there, strict=True)):
            counts["in_the_sides"] += 1
        elif any(sentence in known for sentence, known in zip(sentences, seen, strict=True)):
            counts["repeated"] += 1
        else:
            used.append(pair)
        for sentence, known in zip(sentences, seen, strict=True):
            known.add(sentence)
    used = used[:: -(-len(used) // MOST)] if used else used
    columns = np.array(used, dtype=np.int64).reshape(-1, 2)
    return (columns[:, 0], columns[:, 1]), {**counts, "used": len(used)}


def _lengths(texts: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(pc.utf8_length(texts).to_numpy(), dtype=np.float64)


def calibrate(
    near: Neighbours,
    vectors: Mapping[str, Path],
    texts: Mapping[str, Path],
    margin: Margin,
    retrieval: Retrieval,
    *,
    device: str | Sequence[str] = "cpu",
) -> dict[str, Any]:
    """Hide known pairs among a user's two sides, find them again, and return what that says of the pairs mined without them.

    Args:
        near: nearest neighbours of the two sides.
        vectors, texts: files of source, target, plant_source and plant_target: matrices, and rows of kind `texts`.
        margin, retrieval: as `mine` takes them.
        device: as `neighbours` takes it.

    Returns:
        plants (counts), sides (sentences of each), translations (lower end, median, upper end), unlike (properties by which plants are
        another kind of text, with distances), and curve: records of threshold, pairs, precision and recall, best first.

    Raises:
        InputError: too few plants are left.
    """
    tables = {side: read_rows(path, "texts") for side, path in texts.items()}
    own = tuple(tables[side]["text"] for side in MINED_SIDES)
    rows, counts = usable((tables["plant_source"], tables["plant_target"]), (own[0], own[1]))
    sides = Sides(vectors["source"], vectors["target"], vectors["plant_source"], vectors["plant_target"], rows)
    found = hide(near, sides, margin, retrieval, device=device)
    sizes = len(own[0]), len(own[1])
    drawn = curve(chosen_pairs(near, margin, retrieval), sizes, found, retrieval)
    kinds = {
        f"length of the {side}s": (_lengths(own[number]), _lengths(tables[f"plant_{side}"]["text"])[rows[number]])
        for number, side in enumerate(MINED_SIDES)
    } | neighbourhoods(near, found, float(drawn.translations[1]))
    return {
        "plants": counts,
        "sides": list(sizes),
        "translations": [round(float(end)) for end in drawn.translations],
        "unlike": unlike(kinds),
        "curve": drawn.records(),
    }
