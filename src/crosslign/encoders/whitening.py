"""Whitening of sentence vectors: a shift and a matrix after which those of texts have no mean and a covariance of one.

Su et al. 2021 (arXiv 2103.15316), section 3: with the mean mu and the covariance U diag(s) U^T of the fitted vectors, x becomes
(x - mu) U diag(s)^(-1/2), of which the first coordinates, those of the largest s, are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosslign.errors import InputError
from crosslign.files import iter_rows
from crosslign.vectors import blocks, open_vectors

FLAT = 1e-12
"""Share of the largest variance below which a coordinate has none."""
ROWS = 1 << 14
"""Vectors that are held in float64 at once."""
Float = NDArray[np.float64]


def occurrences(texts: Path, items: Path) -> NDArray[np.int64]:
    """Return how often each text of texts stands among its items, in the order of the texts."""
    counts: Counter[str] = Counter()
    for table in iter_rows(items, ["text_id"]):
        counts.update(table["text_id"].to_pylist())
    return np.array([counts[text] for table in iter_rows(texts, ["text_id"]) for text in table["text_id"].to_pylist()], dtype=np.int64)


def _weighted(vectors: np.ndarray, weights: NDArray[np.int64]) -> Iterator[tuple[Float, Float]]:
    for block in blocks(len(vectors), ROWS):
        yield np.asarray(vectors[block], dtype=np.float64), weights[block, None].astype(np.float64)


def fit(matrix: Path, weights: NDArray[np.int64], dimensions: int) -> tuple[Float, Float]:
    """Return what whitens the vectors of texts.

    Args:
        matrix: float32 [n, d], vectors as long as they come.
        weights: [n], how often each counts.
        dimensions: coordinates that are kept, at most; one without a spread cannot be scaled and is left out.

    Returns:
        The mean, float64 [d], and the matrix, float64 [d, kept].

    Raises:
        InputError: no coordinate has a spread.
    """
    vectors = open_vectors(matrix)
    total = int(weights.sum())
    mean = sum(((w * x).sum(0) for x, w in _weighted(vectors, weights)), np.zeros(vectors.shape[1])) / max(1, total)
    covariance = sum(((w * (x - mean)).T @ (x - mean) for x, w in _weighted(vectors, weights)), np.zeros((len(mean), len(mean))))
    u, spread, _ = np.linalg.svd(covariance / max(1, total - 1))
    kept = min(dimensions, int((spread > max(spread[0] * FLAT, FLAT)).sum()))
    if not kept:
        raise InputError("whitening is impossible: all vectors are equal", where=str(matrix), do="Fit on other texts, or check the encoder")
    return mean, u[:, :kept] / np.sqrt(spread[:kept])


def whiten(matrix: Path, mean: Float, kernel: Float, normalise: bool, out: Path) -> None:
    """Write whitened vectors, float32 [n, dimensions].

    Args:
        matrix: vectors as long as they come.
        mean, kernel: as `fit` gives them.
        normalise: scale them to unit length.
        out: the file to write.
    """
    vectors = open_vectors(matrix)
    found = np.lib.format.open_memmap(out, "w+", np.dtype(np.float32), (len(vectors), kernel.shape[1]))
    for block in blocks(len(vectors), ROWS):
        moved = (np.asarray(vectors[block], dtype=np.float64) - mean) @ kernel
        found[block] = moved / np.linalg.norm(moved, axis=1, keepdims=True).clip(min=1e-12) if normalise else moved
    found.flush()
