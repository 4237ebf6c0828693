"""One side of a search, on its device; and scores of grid rows there (`crosslign.vectors` says what grid and score are)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from crosslign import vectors as unit_rows
from crosslign.errors import InputError
from crosslign.vectors import CHUNK, GRID, blocks, row_norms, to_grid


def exact_scores(left: Tensor, right: Tensor) -> Tensor:
    """Return the scores of aligned grid rows: float32 [n, d] twice, to float32 [n]; equal to `vectors.exact_scores` on every device."""
    if left.device.type == "cpu":
        return torch.from_numpy(unit_rows.exact_scores(left.numpy(), right.numpy()))
    return _as_scores((left.double() * right.double()).sum(1))


def exact_score_matrix(left: Tensor, right: Tensor) -> Tensor:
    """Return the scores of all pairs of grid rows: float32 [n, d] and [m, d], to float32 [n, m]."""
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
        n, d: size of the side.
        centre: float32 [d], mean of the rows on the grid.

    Raises:
        InputError: no rows, or a row that has no direction (NaN, infinite, zero).
    """

    def __init__(self, vectors: np.ndarray, rows: np.ndarray | None, name: str, device: torch.device, keep: int) -> None:
        self._raw, self._rows, self._device = vectors, rows, device
        self.n, self.d = len(vectors) if rows is None else len(rows), vectors.shape[1]
        if not self.n:
            raise InputError("no vectors to search", where=name)
        self._grid: Tensor | None = None
        grid = torch.empty(self.n, self.d, device=device) if self.n * self.d * 4 <= keep else None
        self._scale = np.empty(self.n)
        total = torch.zeros(self.d, dtype=torch.float64, device=device)
        for at in blocks(self.n, CHUNK):
            raw = self._read(at)
            self._scale[at] = GRID / row_norms(raw, self._numbers(at), name)
            block = torch.from_numpy(to_grid(raw, self._scale[at])).to(device)
            total += block.sum(0)
            if grid is not None:
                grid[at] = block
        self.centre = (total / self.n).float()
        self._grid = grid

    def _read(self, at: slice | np.ndarray) -> np.ndarray:
        return np.asarray(self._raw[at if self._rows is None else self._rows[at]])

    def _numbers(self, at: slice) -> np.ndarray:
        numbers: np.ndarray = np.arange(at.start, at.stop) if self._rows is None else self._rows[at]
        return numbers

    def grid(self, at: slice | Tensor) -> Tensor:
        """Return rows on the grid, float32 [rows, d]; `at` is a slice or int64 indices."""
        if self._grid is not None:
            return self._grid[at] if isinstance(at, slice) else self._grid.index_select(0, at)
        where = at if isinstance(at, slice) else at.cpu().numpy()
        return torch.from_numpy(to_grid(self._read(where), self._scale[where])).to(self._device)
