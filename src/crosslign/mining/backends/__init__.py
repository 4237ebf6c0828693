"""Ways to find nearest neighbours in both directions, by name: `backend:` of a user's own mining."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from crosslign.mining.lists import Neighbours, State
from crosslign.registry import Registry


class Backend(Protocol):
    """One way to search."""

    def __call__(self, sources: Path, targets: Path, k: int, *, devices: Sequence[str], state: State, **options: Any) -> Neighbours:
        """Return the k nearest neighbours, in both directions, of the rows of two `.npy` files.

        Args:
            sources, targets: vectors [n, d] and [m, d], float16 or float32, of any length but zero.
            k: neighbours of each row; capped at the size of the other side.
            devices: torch devices that may be used.
            state: where an interrupted search may keep what it has found.
            options: `search_options` of the entry of `mine:`; the backend names and checks them.

        Returns:
            The neighbours; with their recall, where the search is not exact.
        """


BACKENDS: Registry[Backend] = Registry("backend", "crosslign.mining.backends")
"""One module a backend."""
