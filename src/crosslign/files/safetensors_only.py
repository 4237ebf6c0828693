"""Weights that are spread over several files: an index may name safetensors beside it, and nothing else."""

from __future__ import annotations

from pathlib import Path

from crosslign.errors import InputError
from crosslign.files.text import read_json

INDEXES = "*.index.json"


def require_safetensors(folder: Path) -> None:
    """Refuse a model's folder whose index of weights would have anything but safetensors of that folder loaded.

    Transformers unpickles whatever file an index names, also where it is told to take safetensors alone.

    Raises:
        InputError: an index that is none, or that names a file of another kind or place; names both.
    """
    for index in sorted(Path(folder).glob(INDEXES)):
        content = read_json(index)
        named = content.get("weight_map") if isinstance(content, dict) else None
        if not isinstance(named, dict):
            raise InputError("not an index of weights", where=str(index), why="it has no `weight_map`")
        for file in sorted(set(map(str, named.values()))):
            if not file.endswith(".safetensors") or Path(file).name != file:
                raise InputError(f"the index of weights names {file!r}", where=str(index), why="allowed: safetensors files beside it")
