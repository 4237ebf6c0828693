"""faiss's flat inner-product index, searched once in each direction: the cross-check of the project's own search.

It looks at every pair twice and sums in float32, so a score may differ by 1e-6 and neighbours that close may be swapped. The index
holds one side as float32; the other is read piece by piece. It computes on the CPU and keeps no state.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.errors import ResourceError
from crosslign.mining.backends import BACKENDS
from crosslign.mining.knn import Neighbours, State
from crosslign.vectors import blocks, open_both, row_norms

PIECE = 65_536
"""Rows that are read at a time."""

log = logging.getLogger(__name__)


def _unit(vectors: np.ndarray, name: str) -> Iterator[np.ndarray]:
    """Yield float32 rows of length 1, a piece at a time; NaN and zero rows are an `InputError` with the row number."""
    for at in blocks(len(vectors), PIECE):
        piece = vectors[at]
        norms = row_norms(piece, np.arange(at.start, at.stop), name)
        yield np.ascontiguousarray(piece / norms[:, None], dtype=np.float32)


def _nearest(faiss: Any, queries: np.ndarray, base: np.ndarray, k: int, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Return indices int64 [n, k] and cosines float32 [n, k] of the rows of `base` that are nearest to each query."""
    index = faiss.IndexFlatIP(base.shape[1])
    for piece in _unit(base, names[1]):
        index.add(piece)
    found = []
    for piece in _unit(queries, names[0]):
        found.append(index.search(piece, min(k, len(base))))
        log.info("searched %d of %d rows of %s", sum(len(scores) for scores, _ in found), len(queries), names[0])
    return np.concatenate([indices for _, indices in found]), np.concatenate([scores for scores, _ in found]).clip(-1.0, 1.0)


@BACKENDS.register
def search(sources: Path, targets: Path, k: int, *, devices: Sequence[str], state: State) -> Neighbours:
    """Search each direction by itself.

    Raises:
        ResourceError: faiss is not installed.
        InputError: as `neighbours` raises.
    """
    try:
        import faiss
    except ImportError as error:
        raise ResourceError("faiss is not installed", where="mine: backend: faiss_flat", do="pip install faiss-cpu") from error
    x, y = open_both(sources, targets)
    names = str(sources), str(targets)
    forward, backward = _nearest(faiss, x, y, k, names), _nearest(faiss, y, x, k, names[::-1])
    return Neighbours(*forward, *backward)
