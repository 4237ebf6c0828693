"""Nearest neighbours on disk, as safetensors."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from crosslign.errors import InputError
from crosslign.files import atomic_path
from crosslign.mining.lists import Neighbours

FOUND = "neighbours.safetensors"
"""File of a range's folder."""
NAMES = tuple(field.name for field in fields(Neighbours) if field.name != "recall")


def write_neighbours(path: Path, near: Neighbours) -> None:
    """Write the four arrays under their names, and the recall of an approximate search beside them, whole or not at all."""
    with atomic_path(path) as temporary:
        save_file({name: getattr(near, name) for name in NAMES}, temporary, {} if near.recall is None else {"recall": repr(near.recall)})


def read_neighbours(path: Path) -> Neighbours:
    """Read what `write_neighbours` wrote.

    Raises:
        InputError: the file is missing, damaged, or another one.
    """
    try:
        with safe_open(path, "numpy") as file:
            arrays = {name: file.get_tensor(name) for name in NAMES}
            recall = (file.metadata() or {}).get("recall")
            return Neighbours(**arrays, recall=None if recall is None else float(recall))
    except FileNotFoundError as error:
        raise InputError("file is missing", where=str(path), do="Run the target that makes it") from error
    except (SafetensorError, KeyError) as error:
        raise InputError("not a file of neighbours", where=str(path), why=str(error), do="Delete it; the next run rebuilds it") from error
