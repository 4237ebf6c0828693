"""Matrices of sentence vectors: opened, checked, normalised, on a grid where dot products are exact, and compared row by row.

Every row is L2-normalised in float64 and rounded to multiples of 2^-26, and coordinates beyond 1/4 to float32, whose numbers there are
multiples of them. A product of two coordinates is then a multiple of 2^-52, and every partial sum of a dot product stays below 2, so that
float64 holds it without rounding. The **score** of a pair is this exact dot product rounded once to float32 and clipped to [-1, 1]: it
depends neither on the order of summation nor on tile size, threads or device. Rounding moves a row by at most 2^-27 * sqrt(d) + 2^-24, so
that a score differs from the cosine of the unrounded vectors by at most 2^-26 * sqrt(d) + 2^-22 (8e-7 for d = 1024; 3e-8 is typical).

Numpy alone, so that what compares no sides with each other, such as a score of labelled pairs or a table, need not load torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from crosslign.console import number_of
from crosslign.errors import InputError

GRID = 2.0**26
CHUNK = 512
"""Rows that are prepared at once; small, so that float64 copies stay in the processor's cache."""

Vectors = np.ndarray | Path


class VectorError(InputError):
    """A row of a matrix that cannot be used.

    Args:
        what: what is wrong with it.
        matrix: what the matrix is called.
        row: its number, from 0.
    """

    def __init__(self, what: str, matrix: str, row: int) -> None:
        self.matrix, self.row = matrix, row
        super().__init__(what, where=f"{matrix}, row {row}", do="Encode that text again, or remove it")


def name_of(vectors: Vectors, otherwise: str) -> str:
    """Return the path of a matrix that lies in a file, and another name of one in memory."""
    return str(vectors) if isinstance(vectors, Path) else str(getattr(vectors, "filename", None) or otherwise)


def open_vectors(vectors: Vectors, name: str = "vectors") -> np.ndarray:
    """Return a matrix as it is, or memory-map the `.npy` file that a path names.

    Raises:
        InputError: the file is missing or no `.npy`, or the array is not a matrix of floating-point numbers.
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


def open_both(sources: Vectors, targets: Vectors) -> tuple[np.ndarray, np.ndarray]:
    """Return two matrices whose rows can be compared with each other.

    Raises:
        InputError: as `open_vectors` raises; a matrix has no rows, or they differ in dimension.
    """
    left, right = open_vectors(sources, "sources"), open_vectors(targets, "targets")
    names = name_of(sources, "sources"), name_of(targets, "targets")
    if not (len(left) and len(right)):
        raise InputError("no vectors to search", where=names[1] if len(left) else names[0])
    if left.shape[1] != right.shape[1]:
        why = f"{left.shape[1]} and {number_of(right.shape[1], 'dimension')}"
        raise InputError("the vectors differ in dimension", where=f"{names[0]} and {names[1]}", why=why)
    return left, right


def row_norms(chunk: np.ndarray, numbers: np.ndarray, name: str) -> np.ndarray:
    """Return the float64 L2 norms of a chunk of rows, whose numbers are `numbers`.

    Raises:
        VectorError: a row holds NaN or infinity, or is zero; names the row, counted from 0.
    """
    wide = chunk.astype(np.float64)
    norms: np.ndarray = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if bad.size:
        row = int(bad[0])
        what = "zero vector" if norms[row] == 0 else "a vector contains NaN or infinity"
        raise VectorError(what, name, int(numbers[row]))
    return norms


def normalised(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return float64 copies of some rows, of length 1; NaN, infinite and zero rows are a `VectorError`."""
    chosen = np.asarray(vectors[rows])
    unit: np.ndarray = np.asarray(chosen, dtype=np.float64) / row_norms(chosen, rows, name_of(vectors, "embeddings"))[:, None]
    return unit


def finite(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return copies of some rows as they are; a row of NaN or infinity is a `VectorError`, one of zeros is a vector like others."""
    chosen = np.asarray(vectors[rows])
    bad = np.flatnonzero(~np.isfinite(chosen).all(1))
    if bad.size:
        raise VectorError("a vector contains NaN or infinity", name_of(vectors, "embeddings"), int(rows[bad[0]]))
    return chosen


def to_grid(chunk: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return rows on the grid, float32 [rows, d]; `scale` float64 [rows] is 2^26 divided by the length of each row."""
    wide = chunk.astype(np.float64)
    wide *= scale[:, None]
    np.rint(wide, out=wide)
    wide *= 1 / GRID
    return wide.astype(np.float32)


def grid_rows(vectors: np.ndarray, rows: np.ndarray, name: str) -> np.ndarray:
    """Return rows of a matrix on the grid, float32 [rows, d]; errors as those of `row_norms`."""
    found = np.empty((len(rows), vectors.shape[1]), dtype=np.float32)
    for at in blocks(len(rows), CHUNK):
        chunk = np.asarray(vectors[rows[at]])
        found[at] = to_grid(chunk, GRID / row_norms(chunk, rows[at], name))
    return found


def exact_scores(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the scores of aligned grid rows: float32 [n, d] twice, to float32 [n]."""
    return as_scores(_dots(left, right))


def _dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    # numpy widens inside the loop, which is several times faster than float64 copies.
    dots: np.ndarray = np.einsum("ij,ij->i", left, right, dtype=np.float64)
    return dots


def as_scores(cosines: np.ndarray) -> np.ndarray:
    """Return cosines as scores: float32, within [-1, 1]."""
    # Adding zero turns -0.0 into 0.0, which would otherwise be a different key.
    scores: np.ndarray = np.clip(cosines.astype(np.float32), -1.0, 1.0) + np.float32(0.0)
    return scores


def pair_cosines(vectors: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosines of aligned rows of one matrix, on the grid: float32 [n]; 1 where both point the same way.

    Args:
        vectors: [rows, d]; may be a memory map.
        left, right: int64 [n], rows of each pair.

    Raises:
        VectorError: a row holds NaN or infinity, or is zero; names the row.
    """
    name = name_of(vectors, "embeddings")
    scores = np.empty(len(left), dtype=np.float32)
    for at in blocks(len(left), CHUNK):
        first, second = (grid_rows(vectors, rows[at], name) for rows in (left, right))
        # The grid makes a row a little longer or shorter than 1; pairs that are the same sentence twice must tie all the same.
        scores[at] = as_scores(_dots(first, second) / np.sqrt(_dots(first, first) * _dots(second, second)))
    return scores


def blocks(total: int, size: int) -> Iterator[slice]:
    """Yield slices that cover `range(total)`, at most `size` long."""
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))
