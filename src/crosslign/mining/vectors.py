"""Vectors prepared for exact search: checked, normalised, on a grid where dot products are exact, with a low-precision copy.

Every row is L2-normalised in float64 and rounded to multiples of 2^-26; such a row is exact in float32. A product of two
coordinates is then a multiple of 2^-52, and every partial sum of a dot product stays below 2, so that float64 holds it without
rounding. The **score** of a pair is this exact dot product rounded once to float32 and clipped to [-1, 1]: it depends neither on the
order of summation nor on tile size, threads or device. It differs from the cosine of the unrounded vectors by at most
2^-26 * sqrt(d) + 2^-24 (6e-7 for d = 1024; 3e-8 is typical).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from crosslign.errors import InputError

GRID = 2.0**26
CHUNK = 2048
"""Rows that are prepared at once; small, so that float64 copies stay in the processor's cache."""

Vectors = np.ndarray | Path


def open_vectors(vectors: Vectors, name: str = "vectors") -> np.ndarray:
    """Return a matrix as it is, or memory-map the `.npy` file that a path names.

    Raises:
        InputError: the file is missing or no `.npy`, or the array is no matrix of floating-point numbers.
    """
    if isinstance(vectors, np.ndarray):
        array = vectors
    else:
        name = str(vectors)
        try:
            array = np.load(vectors, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError as error:
            raise InputError("file is missing", where=name, do="Run the target that makes it") from error
        except (ValueError, EOFError) as error:
            raise InputError("not a readable .npy file", where=name, why=str(error)) from error
    if array.ndim != 2 or array.dtype.kind != "f":
        raise InputError("not a matrix of floating-point numbers", where=name, why=f"its shape is {array.shape}, its type {array.dtype}")
    return array


def row_norms(chunk: np.ndarray, numbers: np.ndarray, name: str) -> np.ndarray:
    """Return the float64 L2 norms of a chunk of rows, whose numbers are `numbers`.

    Raises:
        InputError: a row holds NaN or infinity, or is zero; names the row, counted from 0.
    """
    wide = chunk.astype(np.float64)
    norms: np.ndarray = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if bad.size:
        row = int(bad[0])
        what = "zero vector" if norms[row] == 0 else "NaN or infinity in a vector"
        raise InputError(what, where=f"{name}, row {numbers[row]}", do="Encode that text again, or take it out")
    return norms


def normalised(vectors: np.ndarray, name: str = "vectors") -> np.ndarray:
    """Return a float64 copy with rows of length 1; NaN, infinite and zero rows are an `InputError` with the row number."""
    unit: np.ndarray = np.asarray(vectors, dtype=np.float64) / row_norms(vectors, np.arange(len(vectors)), name)[:, None]
    return unit


def exact_scores(left: Tensor, right: Tensor) -> Tensor:
    """Return the scores of aligned grid rows: float32 [n, d] twice, to float32 [n]."""
    if left.device.type == "cpu":
        # numpy widens inside the loop, which is several times faster than float64 copies; both are exact, so both are equal.
        return _as_scores(torch.from_numpy(np.einsum("ij,ij->i", left.numpy(), right.numpy(), dtype=np.float64)))
    return _as_scores((left.double() * right.double()).sum(1))


def exact_score_matrix(left: Tensor, right: Tensor) -> Tensor:
    """Return the scores of all pairs of grid rows: float32 [n, d] and [m, d], to float32 [n, m]."""
    return _as_scores(left.double() @ right.double().T)


def pair_cosines(vectors: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the scores of aligned rows of one matrix: float32 [n].

    Args:
        vectors: [rows, d]; may be a memory map.
        left, right: int64 [n], rows of each pair.

    Raises:
        InputError: a row holds NaN or infinity, or is zero; names the row.
    """
    scores = np.empty(len(left), dtype=np.float32)
    for at in blocks(len(left), CHUNK):
        pair = []
        for rows in (left[at], right[at]):
            chunk = np.asarray(vectors[rows])
            pair.append(to_grid(chunk, GRID / row_norms(chunk, rows, "embeddings")))
        scores[at] = exact_scores(*pair).numpy()
    return scores


def to_grid(chunk: np.ndarray, scale: np.ndarray) -> Tensor:
    """Return rows on the grid, float32 [rows, d]; `scale` float64 [rows] is 2^26 divided by the length of each row."""
    wide = torch.from_numpy(chunk.astype(np.float64))
    return wide.mul_(torch.from_numpy(scale)[:, None]).round_().mul_(1 / GRID).float()


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
            block = to_grid(raw, self._scale[at]).to(device)
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
        return to_grid(self._read(where), self._scale[where]).to(self._device)


def blocks(total: int, size: int) -> Iterator[slice]:
    """Yield slices that cover `range(total)`, at most `size` long."""
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))
