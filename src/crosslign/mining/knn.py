"""Exact k nearest neighbours by cosine, in both directions, from one pass over similarity tiles.

Each tile is made once, in the fastest type that the device multiplies (bfloat16 where there are units for it), feeds the running best
lists of its rows and of its columns, and is gone; candidates are re-scored exactly (`vectors`, `tiles`). The result is that of a full
comparison of the exact scores, whatever the tile size, precision, number of threads or device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crosslign.errors import InputError
from crosslign.mining.copies import Copies, error_bounds
from crosslign.mining.ranking import EMPTY, key_indices, key_scores, to_keys
from crosslign.mining.tiles import WIDTH, BoundExceededError, Direction
from crosslign.mining.vectors import Side, Vectors, blocks, exact_score_matrix, open_vectors

DENSE = 1 / 2
"""Share of blocks that hold candidates above which a tile is scored exactly as a whole, because that is cheaper."""
KEEP = 4 << 30
TILES = {"cpu": (2048, 2048), "cuda": (16384, 16384)}


@dataclass(frozen=True)
class Neighbours:
    """Nearest neighbours of n sources and m targets, best first; of equal scores the lower index first.

    Attributes:
        forward_indices: int64 [n, k], targets nearest to each source.
        forward_scores: float32 [n, k], their cosines.
        backward_indices: int64 [m, k'], sources nearest to each target.
        backward_scores: float32 [m, k'].
    """

    forward_indices: np.ndarray
    forward_scores: np.ndarray
    backward_indices: np.ndarray
    backward_scores: np.ndarray


def product_dtype(device: torch.device) -> torch.dtype:
    """Return the type in which a device multiplies matrices fastest with float32 accumulation: bfloat16 or float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    flags = torch.cpu.get_capabilities()
    return torch.bfloat16 if any(flags.get(flag) for flag in ("amx_bf16", "avx512_bf16", "bf16")) else torch.float32


def neighbours(
    sources: Vectors,
    targets: Vectors,
    k: int,
    *,
    source_rows: np.ndarray | None = None,
    target_rows: np.ndarray | None = None,
    device: str = "cpu",
    tile: tuple[int, int] | None = None,
    dtype: torch.dtype | None = None,
    keep: int = KEEP,
) -> Neighbours:
    """Return the k nearest targets of each source and the k nearest sources of each target.

    Memory: the low-precision copy of the targets (m * (d + 6) * 2 bytes), float32 copies of each side up to `keep` bytes, the best lists,
    and one tile. It does not grow with n * m.

    Args:
        sources, targets: arrays [n, d] and [m, d] of float16, float32 or float64, or paths of `.npy` files, which are memory-mapped.
            They are never changed; copies are normalised.
        k: neighbours of each row, at least 1; capped at the size of the other side.
        source_rows, target_rows: int64, rows of these that take part, in this order; indices of the result count them from 0.
        device: a torch device.
        tile: rows and columns of a tile, multiples of 16; changes time and memory, never the result.
        dtype: torch.bfloat16 or torch.float32 for the tiles; default: what the device multiplies fastest. Never changes the result.
        keep: bytes of a side's float32 copy that may stay in memory; a larger one is read again where its rows are needed.

    Raises:
        InputError: unequal dimensions, no rows, or a row of NaN, infinity or zeros; names the row.
    """
    left, right = open_vectors(sources, "sources"), open_vectors(targets, "targets")
    if left.shape[1] != right.shape[1]:
        raise InputError(
            "vectors of unequal dimension", where="sources and targets", why=f"{left.shape[1]} and {right.shape[1]} dimensions"
        )
    if k < 1:
        raise InputError(f"k must be at least 1, not {k}", where="nearest neighbours")
    place = torch.device(device)
    single = torch.float32
    # Each step is taken only when a product broke the bound of the one before; the last makes no products that need a bound.
    steps = dict.fromkeys([(dtype or product_dtype(place), False), (single, False), (single, True)])
    x, y = Side(left, source_rows, "sources", place, keep), Side(right, target_rows, "targets", place, keep)
    for kind, exact in steps:
        try:
            return _Search(x, y, k, kind, tile or TILES[place.type]).run(exact)
        except BoundExceededError:
            continue
    raise AssertionError("the exact search uses no bound")


class _Search:
    """One pass over the tiles of two sides."""

    def __init__(self, x: Side, y: Side, k: int, dtype: torch.dtype, tile: tuple[int, int]) -> None:
        if any(size < WIDTH or size % WIDTH for size in tile):
            raise ValueError(f"tile sizes must be multiples of {WIDTH}, not {tile}")
        self.x, self.y, self.dtype, self.tile = x, y, dtype, tile
        self.x_copies, self.y_copies = Copies(x, y, dtype, first=True), Copies(y, x, dtype, first=False)
        self.k, self.shift = min(k, y.n), self.x_copies.shift
        self.row_bounds = error_bounds(self.x_copies, self.y_copies)
        self.columns = Direction(error_bounds(self.y_copies, self.x_copies), self.shift, min(k, x.n), dtype)

    def run(self, exact: bool) -> Neighbours:
        """Search; `exact` scores every tile as a whole in float64."""
        column_blocks = list(blocks(self.y.n, self.tile[1]))
        copies = [] if exact else [self.y_copies.block(at, WIDTH) for at in column_blocks]
        # One buffer for all tiles: fresh memory would cost a page fault for every 4 KiB of each tile.
        buffer = torch.empty(self.tile[0] * self.tile[1], dtype=self.dtype, device=self.columns.best.device)
        forward = []
        with torch.no_grad(), _full_products():
            for strip in blocks(self.x.n, self.tile[0]):
                rows = Direction(self.row_bounds[strip], self.shift, self.k, self.dtype)
                low = None if exact else self.x_copies.block(strip, WIDTH)
                for index, at in enumerate(column_blocks):
                    if low is None or not self._propose(rows, _product(low, copies[index], buffer), strip, at):
                        self._score_all(rows, strip, at)
                    if rows.crowded():
                        rows.resolve(self.x, self.y, strip.start)
                rows.resolve(self.x, self.y, strip.start)
                forward.append(rows.best.cpu())
                if self.columns.crowded():
                    self.columns.resolve(self.y, self.x)
            self.columns.resolve(self.y, self.x)
        return _unpack(torch.cat(forward), self.columns.best.cpu())

    def _propose(self, rows: Direction, tile: Tensor, strip: slice, at: slice) -> bool:
        """Take the candidates of a low-precision tile; returns False, and takes none, when they are too many."""
        height, width = strip.stop - strip.start, at.stop - at.start
        tile[height:] = -torch.inf
        tile[:, width:] = -torch.inf
        across = tile.view(tile.shape[0], WIDTH, -1)
        down = tile.view(-1, WIDTH, tile.shape[1])
        row_maxima, column_maxima = across.amax(1)[:height], down.amax(1)[:, :width]
        rows.see_maxima(slice(0, height), row_maxima)
        self.columns.see_maxima(at, column_maxima.T.contiguous())
        row_hits = (row_maxima >= rows.thresholds[:, None]).nonzero(as_tuple=True)
        column_hits = (column_maxima >= self.columns.thresholds[at]).nonzero(as_tuple=True)
        if len(row_hits[0]) + len(column_hits[0]) > DENSE * (row_maxima.numel() + column_maxima.numel()):
            return False

        row, block = row_hits
        entries = across[row, :, block]
        hit, lane = (entries >= rows.thresholds[row, None]).nonzero(as_tuple=True)
        rows.propose(row[hit], at.start + lane * across.shape[2] + block[hit], entries[hit, lane])

        block, column = column_hits
        entries = down[block, :, column]
        hit, lane = (entries >= self.columns.thresholds[at][column, None]).nonzero(as_tuple=True)
        self.columns.propose(at.start + column[hit], strip.start + block[hit] * WIDTH + lane, entries[hit, lane])
        return True

    def _score_all(self, rows: Direction, strip: slice, at: slice) -> None:
        """Score a tile exactly as a whole, a few rows at a time."""
        targets = self.y.grid(at)
        numbers = torch.arange(at.start, at.stop, device=targets.device)
        for part in blocks(strip.stop - strip.start, 256):
            own = slice(strip.start + part.start, strip.start + part.stop)
            scores = exact_score_matrix(self.x.grid(own), targets)
            rows.enter(part, _top(to_keys(scores, numbers), self.k))
            sources = torch.arange(own.start, own.stop, device=targets.device)
            self.columns.enter(at, _top(to_keys(scores.T, sources), self.columns.k))


def _product(left: Tensor, right: Tensor, buffer: Tensor) -> Tensor:
    tile = buffer[: len(left) * len(right)].view(len(left), len(right))
    return torch.mm(left, right.T, out=tile)


def _top(keys: Tensor, k: int) -> Tensor:
    return keys.topk(min(k, keys.shape[1]), 1).values


def _unpack(forward: Tensor, backward: Tensor) -> Neighbours:
    if (forward == EMPTY).any() or (backward == EMPTY).any():
        raise AssertionError("a best list is not full")
    return Neighbours(*(part.numpy() for keys in (forward, backward) for part in (key_indices(keys), key_scores(keys))))


@contextmanager
def _full_products() -> Iterator[None]:
    """Forbid TF32 and low-precision accumulation of products on GPUs, which the error bound does not cover."""
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32, settings.allow_bf16_reduced_precision_reduction
    settings.allow_tf32, settings.allow_bf16_reduced_precision_reduction = False, False
    try:
        yield
    finally:
        settings.allow_tf32, settings.allow_bf16_reduced_precision_reduction = before
