"""faiss's flat inner-product index, searched once in each direction: the cross-check of the project's own search.

It looks at every pair twice and sums in float32, so a score may differ by 1e-6 and neighbours that close may be swapped. The index
holds one side as float32; the other is read piece by piece. It computes on the GPUs of the job where
faiss is built for them (`faiss-gpu-cu12`), else on the CPU, and keeps no state.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.mining.backends import BACKENDS
from crosslign.mining.backends._faiss import load_faiss, on_devices, pieces, unit_rows
from crosslign.mining.lists import Neighbours, State
from crosslign.vectors import open_both

PIECE = 65_536
"""Rows that are read at a time."""

log = logging.getLogger(__name__)


def _nearest(
    faiss: Any, queries: np.ndarray, base: np.ndarray, k: int, devices: Sequence[str], names: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return indices int64 [n, k] and cosines float32 [n, k] of the rows of `base` that are nearest to each query."""
    index = faiss.IndexFlatIP(base.shape[1])
    for rows in pieces(len(base), PIECE):
        index.add(unit_rows(base, rows, names[1]))
    index = on_devices(faiss, index, devices)
    found = []
    for rows in pieces(len(queries), PIECE):
        found.append(index.search(unit_rows(queries, rows, names[0]), min(k, len(base))))
        log.info("searched %d of %d rows of %s", rows[-1] + 1, len(queries), names[0])
    return np.concatenate([indices for _, indices in found]), np.concatenate([scores for scores, _ in found]).clip(-1.0, 1.0)


@BACKENDS.register(version=1)
def search(sources: Path, targets: Path, k: int, *, devices: Sequence[str], state: State) -> Neighbours:
    """Search each direction by itself.

    Raises:
        ResourceError: faiss is not installed.
        InputError: as `neighbours` raises.
    """
    faiss = load_faiss("faiss_flat")
    x, y = open_both(sources, targets)
    names = str(sources), str(targets)
    forward, backward = _nearest(faiss, x, y, k, devices, names), _nearest(faiss, y, x, k, devices, names[::-1])
    return Neighbours(*forward, *backward)
