"""Files that torch saved: pickles, read by torch's weights-only reader alone, once, when an encoder is prepared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from crosslign.errors import InputError


def read_torch_file(path: Path) -> Any:
    """Return what a file holds: tensors on the CPU, numbers, texts and plain containers of them.

    The reader rebuilds these by a short list of its own functions; a file that names any other is refused before anything of it is called.

    Raises:
        InputError: it holds anything else, or is damaged.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the reader has no error of its own for each way in which a file can be damaged
        why = " ".join(str(error).split())[:200]
        raise InputError("not a file of plain tensors", where=str(path), why=why, do="Download it again") from error
