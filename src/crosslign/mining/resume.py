"""Running best lists on disk, so that a killed search goes on behind its last saved tile row.

The lists hold exact scores only, and the result of a search is one whatever the order of its tiles: a search that went on gives the
bytes of one that was never stopped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import xxhash
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from crosslign.files import atomic_path
from crosslign.mining.lists import EVERY
from crosslign.vectors import blocks

log = logging.getLogger(__name__)
BYTES = 1 << 26
SUM = "sum"
"""Entry of a state's metadata."""


def digest(vectors: np.ndarray, rows: np.ndarray | None) -> str:
    """Return 128 bits, as hexadecimal, of a matrix, or of the rows that are chosen of it, in their order."""
    number = len(vectors) if rows is None else len(rows)
    state = xxhash.xxh3_128(f"{number} {vectors.shape[1:]} {vectors.dtype}".encode())
    for at in blocks(number, max(1, BYTES // max(1, vectors[:1].nbytes))):
        state.update(np.ascontiguousarray(vectors[at if rows is None else rows[at]]).data)
    return state.hexdigest()


def _sum_of(forward: Tensor, backward: Tensor) -> str:
    """Return a checksum of best lists: what was kept is believed only as it was written."""
    return f"{digest(forward.numpy(), None)} {digest(backward.numpy(), None)}"


class Resume:
    """The state of one search, or of one share of it.

    Args:
        path: file of the state.
        identity: what the search depends on; the state of another one is not taken over.
        every: seconds between two states; 0 keeps one after each tile row.
    """

    def __init__(self, path: Path, identity: Mapping[str, str], every: float = EVERY) -> None:
        self.path, self._identity, self._every = path, dict(identity), every
        self._last = time.monotonic()

    def load(self) -> tuple[Tensor, Tensor] | None:
        """Return the best lists of the rows done and of all columns, or None where there is no state of this search."""
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "pt") as file:
                identity, lists = dict(file.metadata() or {}), (file.get_tensor("forward"), file.get_tensor("backward"))
        except (SafetensorError, OSError) as error:
            log.warning("%s cannot be read (%s): starting over", self.path, error)
            return None
        found = identity.pop(SUM, None)
        if identity != self._identity:
            log.info("%s belongs to another search: starting over", self.path)
            return None
        if found != _sum_of(*lists):
            log.warning("%s is damaged: starting over", self.path)
            return None
        return lists

    def due(self) -> bool:
        """Tell whether it is time for another state."""
        return time.monotonic() - self._last >= self._every

    def save(self, forward: Tensor, backward: Tensor) -> None:
        """Put the lists on the disk, whole or not at all."""
        lists = forward.cpu().contiguous(), backward.cpu().contiguous()
        with atomic_path(self.path) as temporary:
            save_file(dict(zip(("forward", "backward"), lists, strict=True)), temporary, {**self._identity, SUM: _sum_of(*lists)})
        self._last = time.monotonic()
