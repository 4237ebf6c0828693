"""Files of weights beside a config."""

from __future__ import annotations

import shutil
from pathlib import Path


def open_to_readers(folder: Path) -> None:
    """Give the weights directly in a folder the mode of its config.json: safetensors makes them readable by their owner alone."""
    for weights in folder.glob("*.safetensors"):
        shutil.copymode(folder / "config.json", weights)
