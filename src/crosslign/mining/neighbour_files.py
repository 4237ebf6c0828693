"""Nearest neighbours on disk, as safetensors."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from crosslign.errors import InputError
from crosslign.files import atomic_path
from crosslign.mining.knn import Neighbours

NAMES = tuple(field.name for field in fields(Neighbours))


def write_neighbours(path: Path, near: Neighbours) -> None:
    """Write the four arrays under their names, whole or not at all."""
    with atomic_path(path) as temporary:
        save_file({name: getattr(near, name) for name in NAMES}, temporary)


def read_neighbours(path: Path) -> Neighbours:
    """Read what `write_neighbours` wrote.

    Raises:
        InputError: the file is missing, damaged, or another one.
    """
    try:
        arrays = load_file(path)
        return Neighbours(*(arrays[name] for name in NAMES))
    except FileNotFoundError as error:
        raise InputError("file is missing", where=str(path), do="Run the target that makes it") from error
    except (SafetensorError, KeyError) as error:
        raise InputError(
            "not a file of neighbours", where=str(path), why=str(error), do="Delete it; the next run makes it again"
        ) from error
