"""What the backends that use faiss share."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import torch

from crosslign.errors import ResourceError
from crosslign.vectors import blocks, row_norms


def load_faiss(backend: str) -> Any:
    """Return the module faiss.

    On macOS its package and torch's each bring an OpenMP runtime, and two at work in a process end it (faiss-wheels#73): there both
    compute with one thread.

    Raises:
        ResourceError: it is not installed.
    """
    apple = sys.platform == "darwin"
    if apple:
        os.environ.setdefault("KMP_DUPLICATE_LIB_OK", "TRUE")  # else the second runtime ends the process when it is loaded
    try:
        import faiss
    except ImportError as error:
        raise ResourceError("faiss is not installed", where=f"mine: backend: {backend}", do="pip install faiss-cpu") from error
    if apple:
        faiss.omp_set_num_threads(1)
        torch.set_num_threads(1)
    return faiss


def unit_rows(vectors: np.ndarray, rows: np.ndarray, name: str) -> np.ndarray:
    """Return some rows as float32 of length 1; NaN and zero rows are an `InputError` with the row number."""
    piece = np.asarray(vectors[rows])
    return np.ascontiguousarray(piece / row_norms(piece, rows, name)[:, None], dtype=np.float32)


def pieces(total: int, size: int) -> list[np.ndarray]:
    """Return the row numbers below `total`, in order, at most `size` at a time."""
    return [np.arange(at.start, at.stop) for at in blocks(total, size)]
