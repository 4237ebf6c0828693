"""Folders that are looked in before any download: by sha256 through their manifest, else by name."""

from __future__ import annotations

import csv
import functools
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError
from crosslign.files.text import read_text


@functools.cache
def _manifest(mirror: Path) -> Mapping[str, str]:
    """Return path by sha256 of a mirror's MANIFEST.csv (path, bytes, sha256), without lines that lack one; empty where it has none."""
    path = mirror / "MANIFEST.csv"
    if not path.is_file():
        return {}
    rows = csv.DictReader(io.StringIO(read_text(path, encoding="utf-8-sig"), newline=""))
    try:
        if not {"path", "sha256"} <= set(rows.fieldnames or ()):
            raise InputError("a mirror's manifest must have the columns path,bytes,sha256", where=str(path), why=f"found {rows.fieldnames}")
        return {row["sha256"].lower(): row["path"] for row in rows if row["path"] and row["sha256"]}
    except csv.Error as error:
        raise InputError("not a CSV file", where=str(path), why=str(error)) from error


def mirrored(name: str, file: AskedFile, mirrors: Sequence[Path]) -> list[Path]:
    """Return the files of the mirrors that may be this one: by sha256 first, else by `<mirror>/<name>/<file name>`.

    Args:
        name: id of the source; also its folder in a mirror.
        file: its name, and its sha256 where the catalog knows it; of the beginning of a file `of`, the name of the whole one.
        mirrors: the folders, in the order in which they are looked in.

    Raises:
        InputError: a manifest lacks its columns, or is no CSV.
    """
    found = []
    for mirror in map(Path, mirrors):
        by_hash = _manifest(mirror).get(str(file.get("sha256", "")).lower())
        places = [mirror / by_hash] if by_hash else []
        places += [mirror / name / called for called in (file["name"], file.get("of")) if called]
        found += [path for path in places if path.is_file() and Path(os.path.normpath(path)).is_relative_to(os.path.normpath(mirror))]
    return found
