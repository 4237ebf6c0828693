"""Synthetic data on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import archive, packed
from crosslign.errors import InputError
from crosslign.files import atomic_path


def write_file(dest: Path, kind: str, name: str, sentences: Sequence[Mapping[str, str]]) -> None:
    """Write a file of the catalog in its official format, whole or not at all.

    Args:
        dest: final path.
        kind: the kind of synthetic data, as the catalog names it.
        name: the file's name in the catalog, which may say languages, part and packing.
        sentences: aligned sentences by language.

    Raises:
        InputError: there are no sentences, too few of them, or the name does not say what it must.
    """
    if not sentences:
        raise InputError("synthetic data need sentences", where=name)
    content = STAND_INS.get(kind)(name, sentences)
    with atomic_path(dest) as temporary:
        temporary.write_bytes(packed(name, content) if isinstance(content, bytes) else archive(name, content))
