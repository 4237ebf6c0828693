"""Sources of the catalog as people and plans see them: their kind, where a file comes from, its size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosslign.errors import InputError

SOURCE_KINDS = ("hub", "local", "opus", "package", "url")
"""Key of a source that says where its bytes come from; each is a module of `crosslign.corpora.sources`."""


def source_kind(source: Mapping[str, Any]) -> str:
    """Return which kind of source a catalog entry is: the one of its keys that is in `SOURCE_KINDS`.

    Raises:
        InputError: it names none, or several.
    """
    kinds = [name for name in SOURCE_KINDS if name in source]
    if len(kinds) != 1:
        raise InputError("a source names exactly one of " + ", ".join(SOURCE_KINDS), why=f"found {kinds or sorted(source)}")
    return kinds[0]


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


def size_of(file: Mapping[str, Any]) -> str:
    """Return the size of a catalog file for people."""
    size = file.get("bytes", file.get("about_bytes"))
    if size is None:
        return "size not known"
    about = "" if "bytes" in file else "about "
    return f"{about}{size / 1e6:,.1f} MB" if size >= 100_000 else f"{about}{size:,} bytes"
