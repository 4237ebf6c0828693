"""What a search finds, best lists, here and on disk; lists of the same rows, found in different columns, joined: ranges, planted pairs.

A list holds indices int64 [n, k] and their cosines float32 [n, k], best first, of equal cosines the lower index first. Scores are exact,
so the join of several searches is the search of all, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from crosslign.errors import InputError
from crosslign.files import atomic_path
from crosslign.vectors import blocks

Lists = tuple[np.ndarray, np.ndarray]
AT_ONCE = 1 << 18
"""Rows whose lists are sorted together."""
EVERY = 60.0
"""Seconds between two states on disk: each costs as many bytes as the result."""


@dataclass(frozen=True)
class Neighbours:
    """Nearest neighbours of n sources and m targets, best first; of equal scores the lower index first.

    Attributes:
        forward_indices: int64 [n, k], targets nearest to each source.
        forward_scores: float32 [n, k], their cosines.
        backward_indices: int64 [m, k'], sources nearest to each target.
        backward_scores: float32 [m, k'].
        recall: share of the exact neighbours that are among these, as an approximate search measured it on a sample; None for an exact one.
    """

    forward_indices: np.ndarray
    forward_scores: np.ndarray
    backward_indices: np.ndarray
    backward_scores: np.ndarray
    recall: float | None = None

    def turned(self) -> Neighbours:
        """Return the same with sources and targets exchanged."""
        return Neighbours(self.backward_indices, self.backward_scores, self.forward_indices, self.forward_scores, self.recall)


@dataclass(frozen=True)
class State:
    """Where a search keeps what it has found so far, to go on after it was killed.

    Attributes:
        folder: one file a device lies there while a search runs; removed at its end.
        every: seconds between two states; 0 keeps one after each tile row.
        version: versions of what searches, in words; a state of another one is not taken over.
    """

    folder: Path
    every: float = EVERY
    version: str = ""


def merged(lists: Sequence[Lists], k: int) -> Lists:
    """Join best lists of the same rows, those of lower indices first, to the best k."""
    indices, scores = (np.concatenate(parts, axis=1) for parts in zip(*lists, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(indices, order, 1), np.take_along_axis(scores, order, 1)


def entered(own: Lists, later: Lists, k: int) -> Lists:
    """Return best lists of a whole side with candidates of higher indices entered; only rows that one of these is near to are touched."""
    full = min(k, own[0].shape[1] + later[0].shape[1])
    indices, scores = np.empty((len(own[0]), full), np.int64), np.empty((len(own[0]), full), np.float32)
    for at in blocks(len(indices), AT_ONCE):
        held, found = (own[0][at], own[1][at]), (later[0][at], later[1][at])
        if held[0].shape[1] < full:
            indices[at], scores[at] = merged([held, found], full)
            continue
        near = np.flatnonzero((found[1][:, :1] > held[1][:, -1:]).any(1))  # of equal cosines the lower index stays
        indices[at], scores[at] = held[0], held[1]
        indices[at.start + near], scores[at.start + near] = merged([(held[0][near], held[1][near]), (found[0][near], found[1][near])], full)
    return indices, scores


def joined(ranges: Iterable[Neighbours], k: int) -> Neighbours:
    """Join searches of consecutive ranges of the sources, in each of all targets: what one search of all sources finds.

    Memory: the result, one range, and the best lists of the targets once more.

    Args:
        ranges: at least one, in the order of the sources; each counts its sources from 0. They are read one after the other.
        k: neighbours of each row.
    """
    forward: list[Lists] = []
    backward: Lists | None = None
    start, recall = 0, None
    for near in ranges:
        found = near.backward_indices + start, near.backward_scores
        backward = found if backward is None else entered(backward, found, k)
        forward.append((near.forward_indices, near.forward_scores))
        start, recall = start + len(near.forward_indices), near.recall
    if backward is None:
        raise ValueError("no range")
    indices, scores = (np.concatenate(parts) for parts in zip(*forward, strict=True))
    return Neighbours(indices, scores, *backward, recall if len(forward) == 1 else None)


def range_of(part: int, parts: int, rows: int) -> slice:
    """Return the sources of one range of so many, counted from 1: as equal as can be, empty where there are fewer rows than ranges."""
    return slice(rows * (part - 1) // parts, rows * part // parts)


FOUND = "neighbours.safetensors"
"""File of a range's folder."""
NAMES = tuple(field.name for field in fields(Neighbours) if field.name != "recall")


def write_neighbours(path: Path, near: Neighbours) -> None:
    """Write the four arrays under their names, and the recall of an approximate search beside them, whole or not at all."""
    with atomic_path(path) as temporary:
        save_file({name: getattr(near, name) for name in NAMES}, temporary, {} if near.recall is None else {"recall": repr(near.recall)})


def read_neighbours(path: Path) -> Neighbours:
    """Read what `write_neighbours` wrote.

    Raises:
        InputError: the file is missing, damaged, or another one.
    """
    try:
        with safe_open(path, "numpy") as file:
            arrays = {name: file.get_tensor(name) for name in NAMES}
            recall = (file.metadata() or {}).get("recall")
            return Neighbours(**arrays, recall=None if recall is None else float(recall))
    except FileNotFoundError as error:
        raise InputError("file is missing", where=str(path), do="Run the target that makes it") from error
    except (SafetensorError, KeyError) as error:
        raise InputError("not a file of neighbours", where=str(path), why=str(error), do="Delete it; the next run rebuilds it") from error
