"""What the backends that use faiss share."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from crosslign.errors import ResourceError
from crosslign.vectors import blocks, row_norms

log = logging.getLogger(__name__)


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
        raise ResourceError(
            "faiss is not installed", where=f"mine: backend: {backend}", do="pip install faiss-cpu, or faiss-gpu-cu12"
        ) from error
    if apple:
        faiss.omp_set_num_threads(1)
        torch.set_num_threads(1)
    return faiss


def on_devices(faiss: Any, index: Any, devices: Sequence[str]) -> Any:
    """Return an index on the job's GPUs, a whole copy on each, where this build of faiss knows GPUs; else as it is, on the CPU.

    Args:
        faiss: the module.
        index: with all that is added to it.
        devices: torch devices that may be used.
    """
    gpus = [int(device.partition(":")[2] or 0) for device in devices if device.startswith("cuda")]
    if not gpus or not faiss.get_num_gpus():
        return index
    log.info("faiss searches on %d GPUs", len(gpus))
    return faiss.index_cpu_to_gpus_list(index, gpus=gpus)


def unit_rows(vectors: np.ndarray, rows: np.ndarray, name: str) -> np.ndarray:
    """Return some rows as float32 of length 1; NaN and zero rows are an `InputError` with the row number."""
    piece = np.asarray(vectors[rows])
    return np.ascontiguousarray(piece / row_norms(piece, rows, name)[:, None], dtype=np.float32)


def pieces(total: int, size: int) -> list[np.ndarray]:
    """Return the row numbers below `total`, in order, at most `size` at a time."""
    return [np.arange(at.start, at.stop) for at in blocks(total, size)]
