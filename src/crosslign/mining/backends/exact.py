"""The project's own search: exact, one pass for both directions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslign.mining.backends import BACKENDS
from crosslign.mining.knn import Neighbours, State, neighbours


@BACKENDS.register(version=1)
def search(sources: Path, targets: Path, k: int, *, devices: Sequence[str], state: State) -> Neighbours:
    """Search on all devices; goes on where a killed search stopped."""
    return neighbours(sources, targets, k, device=devices, state=state)
