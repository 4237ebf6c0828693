"""A folder as transformers or sentence-transformers save it: taken over without pickles and code."""

from __future__ import annotations

import shutil
from pathlib import Path

from crosslign.encoders.formats import FORMATS
from crosslign.errors import InputError
from crosslign.files.own import model_files


@FORMATS.register(version=1)
def convert(source: Path, dest: Path) -> None:
    """Copy the kept files of a model folder and of the SentenceTransformer modules directly inside it.

    Raises:
        InputError: no folder, or one without safetensors weights.
    """
    if not source.is_dir():
        raise InputError(
            "not a model folder",
            where=str(source),
            why="it is a file, or does not exist",
            do="Set its `format:`, or name the folder that contains it",
        )
    for file in model_files(source):
        target = dest / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    if not list(dest.glob("*.safetensors")):
        raise InputError(
            "the model has no safetensors weights",
            where=str(source),
            why="pickled weights are never loaded",
            do="Choose a revision that has model.safetensors, or set `format: torch_weights`, which loads only plain tensors",
        )
