"""Threads declared are threads used: one call limits every library that a job may load."""

from __future__ import annotations

import os
import sys

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")


def limit_threads(threads: int) -> None:
    """Limit OpenMP, MKL, tokenizers, Arrow, faiss and torch to `threads` (>= 1) threads.

    Call it before torch is imported: the environment variables are read once, at load time.
    Torch, when it is already there, is limited by its own call.
    """
    for variable in VARIABLES:
        os.environ[variable] = str(threads)
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    import pyarrow

    pyarrow.set_cpu_count(threads)
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(threads)
