"""One side of a search, on its device; and scores of grid rows there (`crosslign.vectors` says what grid and score are)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy

import numpy as np
import torch
from torch import Tensor

import crosslign.vectors as unit_rows
from crosslign.errors import InputError
from crosslign.mining.sizes import SIZES
from crosslign.vectors import CHUNK, GRID, blocks, row_norms, to_grid

TYPES = {2: torch.float16, 4: torch.float32}
"""Types in which numbers reach a GPU, by their bytes; others become float64."""


def on_grid(rows: Tensor, scale: Tensor) -> Tensor:
    """Return rows on the grid, float32 [rows, d]; equal to `vectors.to_grid` on every device, as each operation is rounded by IEEE 754."""
    # A product with float64 is float64.
    return (rows * scale[:, None]).round_().mul_(1 / GRID).float()


def exact_scores(left: Tensor, right: Tensor) -> Tensor:
    """Return the scores of aligned grid rows: float32 [n, d] twice, to float32 [n]; equal to `vectors.exact_scores` on every device."""
    if left.device.type == "cpu":
        return torch.from_numpy(unit_rows.exact_scores(left.numpy(), right.numpy()))
    return _as_scores(left.double().mul_(right).sum(1))


def exact_score_matrix(left: Tensor, right: Tensor) -> Tensor:
    """Return the scores of all pairs of grid rows: [n, d] and [m, d], float32 or float64, to float32 [n, m]."""
    return _as_scores(left.double() @ right.double().T)


def _as_scores(dots: Tensor) -> Tensor:
    # Adding zero turns -0.0 into 0.0, which would otherwise be a different key.
    return dots.float().clamp_(-1.0, 1.0).add_(0.0)


class Side:
    """One side of a search.

    Args:
        vectors: array or memory map [rows, d], float16, float32 or float64.
        rows: which rows of it take part, in this order; all when None.
        name: how messages call this side.
        device: where products are made.
        keep: largest float32 copy that is kept in memory, in bytes; a larger side is read again where rows of it are needed.

    Attributes:
        name: how messages call this side.
        device: where its rows on the grid, and products, are made.
        n, d: size of the side.
        centre: float32 [d], mean of the rows on the grid.

    Raises:
        InputError: no rows, or a row that has no direction (NaN, infinite, zero).
    """

    def __init__(self, vectors: np.ndarray, rows: np.ndarray | None, name: str, device: torch.device, keep: int) -> None:
        self._raw, self._rows, self.name, self.device = vectors, rows, name, device
        self.n, self.d = len(vectors) if rows is None else len(rows), vectors.shape[1]
        if not self.n:
            raise InputError("no vectors to search", where=name)
        self._grid: Tensor | None = None
        grid = torch.empty(self.n, self.d, device=device) if self.n * self.d * 4 <= keep else None
        self._scale = np.empty(self.n)
        total = torch.zeros(self.d, dtype=torch.float64, device=device)
        for at, scale, block in self._measured():
            self._scale[at] = scale
            total += block.sum(0)
            if grid is not None:
                grid[at] = block
        self.centre = (total / self.n).float()
        self._grid = grid

    def on(self, device: torch.device) -> Side:
        """Return the same side on another device."""
        other = copy(self)
        other.device, other.centre = device, self.centre.to(device)
        other._grid = None if self._grid is None else self._grid.to(device)
        return other

    def grid(self, at: slice | Tensor) -> Tensor:
        """Return rows on the grid, float32 [rows, d]; `at` is a slice or int64 indices."""
        if self._grid is not None:
            return self._grid[at] if isinstance(at, slice) else self._grid.index_select(0, at)
        where = at if isinstance(at, slice) else at.cpu().numpy()
        return self._placed(self._read(where), self._scale[where])

    def _read(self, at: slice | np.ndarray) -> np.ndarray:
        return np.asarray(self._raw[at if self._rows is None else self._rows[at]])

    def _placed(self, raw: np.ndarray, scale: np.ndarray) -> Tensor:
        """Return rows on the grid and on the device: put there before they go to it, or once they are there, where that is faster."""
        if self.device.type == "cpu":
            return torch.from_numpy(to_grid(raw, scale))
        return on_grid(self._sent(raw), self._sent(scale))

    def _sent(self, array: np.ndarray) -> Tensor:
        # A GPU fetches pinned memory several times as fast, and while the host goes on; torch keeps it until it is fetched.
        pinned = torch.empty(array.shape, dtype=TYPES.get(array.itemsize, torch.float64), pin_memory=True)
        np.copyto(pinned.numpy(), array)
        return pinned.to(self.device, non_blocking=True)

    def _measured(self) -> Iterator[tuple[slice, np.ndarray, Tensor]]:
        """Yield blocks of rows as `_measure` returns them; a few blocks ahead, one in each thread that torch may use."""
        threads = torch.get_num_threads()
        waiting: deque[tuple[slice, Future[tuple[np.ndarray, Tensor]]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for at in blocks(self.n, SIZES[self.device.type].read):
                waiting.append((at, pool.submit(self._measure, at)))
                if len(waiting) > threads:
                    block, measured = waiting.popleft()
                    yield block, *measured.result()
            for block, measured in waiting:
                yield block, *measured.result()

    def _measure(self, at: slice) -> tuple[np.ndarray, Tensor]:
        """Return what takes some rows to the grid, float64 [rows], and these rows there."""
        raw, scale = self._read(at), np.empty(at.stop - at.start)
        numbers = np.arange(at.start, at.stop) if self._rows is None else self._rows[at]
        for part in blocks(len(raw), CHUNK):
            # The order of a sum may change its last bit: lengths are numpy's, of the same rows at a time, whatever the device.
            scale[part] = GRID / row_norms(raw[part], numbers[part], self.name)
        return scale, self._placed(raw, scale)
