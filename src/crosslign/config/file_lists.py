"""Files of a source listed in a CSV, read and checked like those listed in the catalog."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.config.schema import check
from crosslign.config.splits import split_files
from crosslign.config.yaml_files import Keys, YamlFile
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.text import read_text
from crosslign.paths import CATALOG, own_or_catalog

NUMBERS = ("bytes", "about_bytes")


def _value(key: str, text: str) -> str | int:
    return int(text) if key in NUMBERS and text.isascii() and text.isdigit() else text


def _read(path: Path, shown: Path) -> YamlFile:
    """Return the rows of a CSV, empty fields left out, as a file of the configuration that may be checked against a schema.

    Raises:
        InputError: it is missing, not UTF-8 or no CSV, or a row has more fields than there are columns.
    """
    rows: list[dict[str, Any]] = []
    lines: dict[Keys, int] = {}
    reader = csv.DictReader(io.StringIO(read_text(path, shown), newline=""), strict=True)
    try:
        for row in reader:
            if None in row:
                why = number_of(len(reader.fieldnames or ()), "column")
                raise InputError("more fields than columns", where=f"{shown}:{reader.line_num}", why=why)
            lines[(len(rows),)] = reader.line_num
            rows.append({key: _value(key, text) for key, text in row.items() if text})
    except csv.Error as error:
        raise InputError("not a CSV file", where=str(shown), why=str(error)) from error
    return YamlFile(shown, rows, lines)


def _listed(path: Path, shown: Path, checks: bool) -> Any:
    file = _read(path, shown)
    if checks:
        check(file, "common", "files")
    return file.content


_from_catalog = functools.cache(_listed)
"""The same for a CSV of the catalog, which no run changes."""


def with_listed_files(root: Path, sources: Mapping[str, Any], *, checks: bool = True) -> dict[str, Any]:
    """Replace `files_from: some.csv` (name, sha256, bytes and others) by the files that the CSV lists; empty fields are not known.

    A source with `split` has the files of `split_files`.

    Args:
        root: the project's folder.
        sources: entries by id.
        checks: as `load_project` takes it.

    Raises:
        InputError: the CSV cannot be read, or a row is not a file of the catalog; a folder has no such split; or two files of a source
            have the same name.
    """
    filled = {}
    for name, entry in sources.items():
        filled[name] = {key: value for key, value in entry.items() if key != "files_from"}
        if "files_from" in entry:
            path = own_or_catalog(root / entry["files_from"], entry["files_from"])
            listed = _from_catalog if path == CATALOG / entry["files_from"] else _listed
            filled[name]["files"] = [dict(row) for row in listed(path, Path(entry["files_from"]), checks)]
        elif "split" in entry:
            filled[name]["files"] = split_files(name, entry)
        names = [file["name"] for file in filled[name].get("files", [])]
        if len(set(names)) < len(names):
            twice = next(file for file in names if names.count(file) > 1)
            raise InputError("two files have the same name", where=f"source {name!r}", why=f"found {twice!r} again")
    return filled
