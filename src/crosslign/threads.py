"""Threads of a job's libraries, limited to those that its rule declares; pandas is kept from loading."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")
CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
KEPT = "16"
"""Products of matrices that oneDNN, and torch above it, keep prepared: each has a buffer of some MB, and batches without padding
have ever new sizes. Of 1,024, their default, a training of MiniLM held 5 GB after 60 steps and 8 GB after 400; of 16, 2 GB."""


def limit_threads(threads: int) -> None:
    """Limit OpenMP, MKL, tokenizers, Arrow, faiss and torch to `threads` (>= 1) threads, and what products of matrices keep.

    Call it before torch is imported: the environment variables are read once, at load time.
    Torch, when it is already there, is limited by its own call.
    """
    for variable in VARIABLES:
        os.environ[variable] = str(threads)
    for variable in CACHES:
        os.environ.setdefault(variable, KEPT)
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    import pyarrow

    pyarrow.set_cpu_count(threads)
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(threads)


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Give torch so many threads for a while: for what gives the same bytes with any number of them."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _NoPandas:
    """A finder of modules that knows of no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def do_without_pandas() -> None:
    """Let pyarrow do without pandas: it looks for it once, with its first array, and to load it takes longer than most jobs compute."""
    import pyarrow

    sys.meta_path.insert(0, _NoPandas)
    try:
        pyarrow.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)
