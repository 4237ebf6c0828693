"""A folder of transformers whose weights torch saved (`pytorch_model.bin`), somewhere inside what was published."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file

from crosslign.corpora.archives import extract_folder
from crosslign.encoders.formats import FORMATS
from crosslign.encoders.formats._torch_file import read_torch_file
from crosslign.encoders.formats.transformers_folder import convert as convert_folder
from crosslign.encoders.weights import open_to_readers
from crosslign.errors import InputError

WEIGHTS = "pytorch_model.bin"
LARGEST = 64 << 30
"""Bytes that a packed model may have."""


@FORMATS.register(version=1)
def convert(source: Path, dest: Path) -> None:
    """Write a new folder, with the weights as safetensors.

    Args:
        source: a folder that holds the model's folder at any depth, or one zip of such a folder.
        dest: the folder to write.

    Raises:
        InputError: there is no such folder, or more than one; its weights are not plain tensors.
    """
    with tempfile.TemporaryDirectory(dir=dest.parent, prefix=".unpacked-") as folder:
        archives = sorted(source.glob("*.zip")) if source.is_dir() else [source]
        for archive in archives:
            extract_folder(archive, "", Path(folder) / archive.stem, LARGEST)
        places = [Path(folder)] + [source] * source.is_dir()
        found = sorted({path.parent for place in places for path in place.rglob(WEIGHTS)})
        if len(found) != 1:
            raise InputError(
                f"exactly one folder must contain {WEIGHTS}",
                where=str(source),
                why=f"found {len(found)}",
                do="Name the folder that contains it",
            )
        save_file(_tensors(found[0] / WEIGHTS), dest / "model.safetensors", metadata={"format": "pt"})
        convert_folder(found[0], dest)
        open_to_readers(dest)


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    content = read_torch_file(path)
    if not isinstance(content, dict) or not content or not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise InputError("not the weights of a model", where=str(path), why="it must contain only tensors by name")
    return {str(name): value.clone().contiguous() for name, value in content.items()}  # tensors may share memory there
