"""Every draw of a run from its one seed: a generator is a function of what is drawn and of the step, never of what ran before.

So a run that was killed at any step needs no saved generator to go on as if nothing had happened.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch


def derive(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed for one purpose, such as `derive(42, "order", "verses", 3)`."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def numpy_generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return NumPy's generator for one purpose."""
    return np.random.Generator(np.random.PCG64(derive(seed, *names)))


def torch_generator(seed: int, *names: str | int) -> torch.Generator:
    """Return a CPU generator of torch for one purpose."""
    return torch.Generator().manual_seed(derive(seed, *names))
