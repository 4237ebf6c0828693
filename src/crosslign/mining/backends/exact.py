"""The project's own search: exact, one pass for both directions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crosslign.mining.backends import BACKENDS
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours, State, range_of
from crosslign.vectors import open_both


@BACKENDS.register(version=1)
def search(sources: Path, targets: Path, k: int, *, devices: Sequence[str], state: State, part: int = 1, parts: int = 1) -> Neighbours:
    """Search on all devices; goes on where a killed search stopped.

    Args:
        sources, targets, k, devices, state: as in `Backend`.
        part, parts: which of so many ranges of the sources is searched, in all targets; what is found counts its sources from 0.
            `lists.joined` makes the whole of all ranges.
    """
    x, y = open_both(sources, targets)
    rows = range_of(part, parts, len(x))
    if rows.start == rows.stop:
        lists = [np.empty(shape, kind) for shape in ((0, min(k, len(y))), (len(y), 0)) for kind in (np.int64, np.float32)]
        return Neighbours(lists[0], lists[1], lists[2], lists[3])
    chosen = None if parts == 1 else np.arange(rows.start, rows.stop)
    return neighbours(sources, targets, k, source_rows=chosen, device=devices, state=state)
