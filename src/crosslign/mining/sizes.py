"""Sizes of the blocks in which a kind of device works. They change time and memory, never a result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Blocks of one kind of device.

    Attributes:
        tile: rows and columns of a tile, at most.
        read: rows that a thread of the host reads and measures at once.
        copied: rows of which low-precision copies are made at once.
        scored: pairs that are re-scored at once.
        looked_up: places of best lists in which pairs are looked up at once.
        dense: share of a tile's blocks that hold candidates above which all its pairs are scored, because that is cheaper.
        dense_rows: rows of such a tile that are scored at once.
    """

    tile: tuple[int, int]
    read: int
    copied: int
    scored: int
    looked_up: int
    dense: float
    dense_rows: int


# A processor is fast on what stays in its cache; on a GPU each call costs some microseconds, whatever it works on, and a dot product of
# two rows costs hundreds of times its share of a product of matrices.
SIZES = {
    "cpu": Sizes((1 << 11, 1 << 11), 1 << 9, 1 << 9, 1 << 9, 1 << 15, 1 / 2, 1 << 8),
    "cuda": Sizes((1 << 15, 1 << 15), 1 << 10, 1 << 14, 1 << 15, 1 << 22, 1 / 8, 1 << 10),
}
"""By type of device."""
