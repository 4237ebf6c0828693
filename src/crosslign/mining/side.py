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
        keep: bytes of the side's rows that may stay on the device: as float32 on the grid, or, on a GPU, as the float16 that they are.
            A larger side is read again where rows of it are needed.

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
        # On a GPU float16 rows stay as they are, in half the memory, and go to the grid where they are needed.
        self._halved = vectors.itemsize == 2 and device.type == "cuda"
        dtype = torch.float16 if self._halved else torch.float32
        kept = torch.empty(self.n, self.d, dtype=dtype, device=device) if self.n * self.d * dtype.itemsize <= keep else None
        self._scale = np.empty(self.n)
        total = torch.zeros(self.d, dtype=torch.float64, device=device)
        for at, scale, sent, block in self._measured():
            self._scale[at] = scale
            total += block.sum(0)
            if kept is not None:
                kept[at] = sent if self._halved else block
        self.centre = (total / self.n).float()
        self._kept, self._scale_there = kept, torch.from_numpy(self._scale).to(device)

    def on(self, device: torch.device) -> Side:
        """Return the same side on another device."""
        other = copy(self)
        other.device, other.centre, other._scale_there = device, self.centre.to(device), self._scale_there.to(device)
        other._kept = None if self._kept is None else self._kept.to(device)
        return other

    def grid(self, at: slice | Tensor) -> Tensor:
        """Return rows on the grid, float32 [rows, d]; `at` is a slice or int64 indices."""
        if self._kept is None:
            where = at if isinstance(at, slice) else at.cpu().numpy()
            return self._placed(self._read(where), self._scale[where])[1]
        rows = self._kept[at] if isinstance(at, slice) else self._kept.index_select(0, at)
        return on_grid(rows, self._scale_there[at]) if self._halved else rows

    def _read(self, at: slice | np.ndarray) -> np.ndarray:
        return np.asarray(self._raw[at if self._rows is None else self._rows[at]])

    def _placed(self, raw: np.ndarray, scale: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return rows as they reach the device, and on the grid: put there before they go to it, or on it, if that is faster."""
        if self.device.type == "cpu":
            grid = torch.from_numpy(to_grid(raw, scale))
            return grid, grid
        sent = self._sent(raw)
        return sent, on_grid(sent, self._sent(scale))

    def _sent(self, array: np.ndarray) -> Tensor:
        # A GPU fetches pinned memory several times as fast, and while the host goes on; torch keeps it until it is fetched.
        pinned = torch.empty(array.shape, dtype=TYPES.get(array.itemsize, torch.float64), pin_memory=True)
        np.copyto(pinned.numpy(), array)
        return pinned.to(self.device, non_blocking=True)

    def _measured(self) -> Iterator[tuple[slice, np.ndarray, Tensor, Tensor]]:
        """Yield blocks of rows as `_measure` returns them; a few blocks ahead, one in each thread that torch may use."""
        threads = torch.get_num_threads()
        waiting: deque[tuple[slice, Future[tuple[np.ndarray, Tensor, Tensor]]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for at in blocks(self.n, SIZES[self.device.type].read):
                waiting.append((at, pool.submit(self._measure, at)))
                if len(waiting) > threads:
                    block, measured = waiting.popleft()
                    yield block, *measured.result()
            for block, measured in waiting:
                yield block, *measured.result()

    def _measure(self, at: slice) -> tuple[np.ndarray, Tensor, Tensor]:
        """Return what takes some rows to the grid, float64 [rows], and these rows as `_placed` does."""
        raw, scale = self._read(at), np.empty(at.stop - at.start)
        numbers = np.arange(at.start, at.stop) if self._rows is None else self._rows[at]
        for part in blocks(len(raw), CHUNK):
            # The order of a sum may change its last bit: lengths are numpy's, of the same rows at a time, whatever the device.
            scale[part] = GRID / row_norms(raw[part], numbers[part], self.name)
        return scale, *self._placed(raw, scale)
