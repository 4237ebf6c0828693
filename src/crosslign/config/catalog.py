"""Sources of the catalog as people and plans see them: their kind, where a file comes from, its size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.files.home import own_folder

SOURCE_KINDS = ("hub", "local", "opus", "package", "url")
"""Key of a source that says where its bytes come from; each is a module of `crosslign.corpora.sources`."""


def source_kind(source: Mapping[str, Any]) -> str:
    """Return which kind of source a catalog entry is: the one of its keys that is in `SOURCE_KINDS`."""
    return next(name for name in SOURCE_KINDS if name in source)


def file_names(source: Mapping[str, Any], entry: Mapping[str, Any]) -> list[str]:
    """Return the files of a source that an entry of the catalog reads: those that it names, or all."""
    return list(entry.get("files") or [file["name"] for file in source["files"]])


def describe(source: Mapping[str, Any], file: Mapping[str, Any]) -> str:
    """Return where a file comes from, as messages name it: a URL, a package, a hub path, a corpus of OPUS, a local path."""
    path = file.get("path", file["name"])
    kind = source_kind(source)
    if kind == "package":
        return f"package {source['package']}=={source['version']} {file['name']}"
    if kind == "hub":
        return f"hub:{source['hub']}@{source.get('revision', 'main')}/{path}"
    if kind == "opus":
        return f"opus:{source['opus']}/{source['version']}/{path}"
    return f"{str(source[kind]).rstrip('/')}/{path}"


def local_file(source: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    """Return the file of this machine that a source with `local:` names.

    Raises:
        InputError: nobody knows its home folder.
    """
    return own_folder(source["local"]) / file.get("path", file["name"])


def size_of(file: Mapping[str, Any]) -> str:
    """Return the size of a catalog file for people."""
    size = file.get("bytes", file.get("about_bytes"))
    if size is None:
        return "size not known"
    about = "" if "bytes" in file else "about "
    return f"{about}{size / 1e6:,.1f} MB" if size >= 100_000 else f"{about}{size:,} bytes"
