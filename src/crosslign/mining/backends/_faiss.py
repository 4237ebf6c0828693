"""What the backends that use faiss share."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslign.errors import ResourceError
from crosslign.vectors import blocks, row_norms


def load_faiss(backend: str) -> Any:
    """Return the module faiss.

    Raises:
        ResourceError: it is not installed.
    """
    try:
        import faiss
    except ImportError as error:
        raise ResourceError("faiss is not installed", where=f"mine: backend: {backend}", do="pip install faiss-cpu") from error
    return faiss


def unit_rows(vectors: np.ndarray, rows: np.ndarray, name: str) -> np.ndarray:
    """Return some rows as float32 of length 1; NaN and zero rows are an `InputError` with the row number."""
    piece = np.asarray(vectors[rows])
    return np.ascontiguousarray(piece / row_norms(piece, rows, name)[:, None], dtype=np.float32)


def pieces(total: int, size: int) -> list[np.ndarray]:
    """Return the row numbers below `total`, in order, at most `size` at a time."""
    return [np.arange(at.start, at.stop) for at in blocks(total, size)]
