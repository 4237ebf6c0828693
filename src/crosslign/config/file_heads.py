"""Beginnings of large files (`head: 300 MB` of a corpus): each is a file of its source, beside the whole one, which is then not fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from crosslign.config.catalog import bytes_of, file_names, source_kind
from crosslign.entries.catalog import Corpus, File, Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError

UNITS = {"kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
IN_LINES = ("json_lines", "text_lines", "tsv")
"""Readers of which each row is one line of one file: what is cut off is one line."""
NOT_IN_LINES = (".zip", ".whl", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".zst", ".parquet")


def head_bytes(said: str) -> int:
    """Return the bytes of `300 MB`."""
    number, unit = said.split()
    return int(float(number) * UNITS[unit])


def _head_of(file: File, said: str) -> AskedFile:
    """Return the entry of a file's beginning; its `about_bytes` is the size of the whole."""
    size, path, name = head_bytes(said), file.get("path", file["name"]), f"head{said.replace(' ', '')}-{file['name']}"
    return {"name": name, "of": file["name"], "path": path, "bytes": size, "head": size, "about_bytes": bytes_of(file)}


def _refuse(name: str, entry: Corpus, source: Source, files: Mapping[str, File]) -> None:
    """Refuse a beginning that could not be read, or whose whole is of unknown size."""
    where = f"corpora.{name}.head"
    if entry["reader"] not in IN_LINES:
        raise InputError(
            f"{entry['reader']} reads whole files only", where=where, why=f"readers of a file's beginning: {', '.join(IN_LINES)}"
        )
    if source_kind(source) != "url":
        raise InputError("this source supplies whole files only", where=where, why=f"found kind {source_kind(source)}, expected url")
    for file in files:
        if file.endswith(NOT_IN_LINES):
            raise InputError(f"{file} is not a text file", where=where, why="an archive that is cut cannot be opened")
        if not bytes_of(files[file]):
            raise InputError(f"the size of {file} is unknown", where=where, do="Add its `about_bytes`")


def with_heads(
    sources: Mapping[str, Source], corpora: Mapping[str, Corpus], *, stand_in: bool
) -> tuple[dict[str, Source], dict[str, Corpus]]:
    """Return sources with the beginnings that corpora ask for among their files, and corpora that read these.

    A file that is not larger than what is asked of it is read whole, as are synthetic files.

    Args:
        sources: with their files.
        corpora: entries; those with `head` name their files afterwards.
        stand_in: whether this scale writes its own sources: nothing is fetched then, and `head` says nothing.

    Raises:
        InputError: a reader, source or file that a beginning is not possible of.
    """
    made, found = dict(sources), dict(corpora)
    for name, entry in corpora.items():
        if "head" not in entry:
            continue
        found[name] = cast(Corpus, {key: value for key, value in entry.items() if key != "head"})
        if entry.get("source") not in sources:
            continue  # refused elsewhere, by its name
        source = made[entry["source"]]
        known = {file["name"]: file for file in source["files"]}
        files = {file: known[file] for file in file_names(source, entry) if file in known}
        _refuse(name, entry, source, files)
        if stand_in:
            continue
        size = head_bytes(entry["head"])
        heads = {file: _head_of(known[file], entry["head"]) for file in files if bytes_of(known[file]) > size}
        if not heads:
            continue
        files_and_heads = [*source["files"], *(head for head in heads.values() if head["name"] not in known)]
        made[entry["source"]] = {**source, "files": files_and_heads}
        found[name] = {**entry, "files": [heads[file]["name"] if file in heads else file for file in file_names(source, entry)]}
    return made, found
