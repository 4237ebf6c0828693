"""Sources of the catalog as people and plans see them: their kind, where a file comes from, its size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlencode

from crosslign.entries.catalog import File, Source
from crosslign.entries.resolved import AskedFile
from crosslign.files.home import own_folder

SOURCE_KINDS = ("github", "hub", "local", "opus", "package", "url")
"""Key of a source that says where its bytes come from; each is a module of `crosslign.corpora.sources`."""
HEAD = re.compile(r"head[0-9.]+[kMG]B-")
"""How the name of the beginning of another file begins (`crosslign.config.file_heads`)."""
RAW = "https://raw.githubusercontent.com/"
"""Where GitHub gives a single file of a repository at a commit."""


def reader_of(entry: Mapping[str, Any]) -> str:
    """Return the reader of a corpus: `joined` of an evaluation corpus that is made of others; empty where the entry says nothing."""
    return "joined" if "of" in entry else str(entry.get("reader", ""))


def source_kind(source: Source) -> str:
    """Return which kind of source a catalog entry is: the one of its keys that is in `SOURCE_KINDS`."""
    return next(name for name in SOURCE_KINDS if name in source)


def file_names(source: Source, entry: Mapping[str, Any]) -> list[str]:
    """Return the files of a source that an entry of the catalog reads: those that it names, or all, without beginnings of them."""
    return list(entry.get("files") or [file["name"] for file in source["files"] if "head" not in file])


def is_head(name: str) -> bool:
    """Tell whether a file of this name is the beginning of another."""
    return HEAD.match(name) is not None


def in_repository(source: Source, file: File) -> str:
    """Return the path of a file in its repository on GitHub."""
    return "/".join(filter(None, [str(source.get("folder", "")).strip("/"), str(file.get("path", file["name"]))]))


def addresses(source: Source) -> list[Source]:
    """Return the places that a source's files are asked for in turn: its own, and those of `urls`, each as a source of its own.

    A file of GitHub that the archive of its repository does not bring is asked for alone.
    """
    limit = {"connections": source["connections"]} if "connections" in source else {}
    found: list[Any] = [source, *({"url": address, "whole": not address.endswith("/"), **limit} for address in source.get("urls", ()))]
    if source_kind(source) == "github":
        found.append({"url": f"{RAW}{source['github']}/{source['revision']}/{source.get('folder', '')}", "connections": 1})
    return found


def hints_text(source: Source, file: File) -> str:
    """Return what helps to fetch a file and changes none of its bytes, in one line of a job's resources."""
    found = {"urls": source.get("urls", []), "connections": source.get("connections", []), "about_bytes": file.get("about_bytes", [])}
    return urlencode(found, doseq=True) or "none"


def with_hints(source: Source, file: File, hints: str) -> tuple[Source, AskedFile]:
    """Return a source and a file of it with what `hints_text` said of them."""
    said: dict[str, Any] = {key: values if key == "urls" else int(values[0]) for key, values in parse_qs(hints).items()}
    size = {"about_bytes": said.pop("about_bytes")} if "about_bytes" in said else {}
    return cast(Source, {**source, **said}), cast(AskedFile, {**file, **size})


def describe(source: Source, file: File) -> str:
    """Return where a file comes from, as messages name it: a URL, a package, a hub path, a corpus of OPUS, a local path."""
    path = file.get("path", file["name"])
    kind = source_kind(source)
    if kind == "package":
        return f"package {source['package']}=={source['version']} {file['name']}"
    if kind == "hub":
        return f"hub:{source['hub']}@{source.get('revision', 'main')}/{path}"
    if kind == "opus":
        return f"opus:{source['opus']}/{source['version']}/{path}"
    if kind == "github":
        return f"{RAW}{source['github']}/{source['revision']}/{in_repository(source, file)}"
    place = source["url"] if kind == "url" else source["local"]
    return f"{place.rstrip('/')}/{path}"


def local_file(source: Source, file: File) -> Path:
    """Return the file of this machine that a source with `local:` names.

    Raises:
        InputError: nobody knows its home folder.
    """
    return own_folder(source["local"]) / str(file.get("path", file["name"]))


FROM, TO = 0.5, 1.5
"""A rough size of the catalog is right by half of it."""


def off(size: int, file: File) -> str:
    """Return what is wrong with a size by the rough one of the catalog; empty where it can be."""
    about = file.get("about_bytes")
    if not about or FROM * about <= size <= TO * about:
        return ""
    return f"expected about {about:,} bytes, found {size:,}: if the publisher's file is right, correct `about_bytes` in the catalog"


def bytes_of(file: File) -> int:
    """Return the size of a catalog file, the rough one where the exact one is not known; 0 where nobody said any."""
    return int(file.get("bytes") or file.get("about_bytes") or 0)


def size_of(file: File) -> str:
    """Return the size of a catalog file for people."""
    if not (size := bytes_of(file)):
        return "size not known"
    about = "" if "bytes" in file else "about "
    return f"{about}{size / 1e6:,.1f} MB" if size >= 100_000 else f"{about}{size:,} bytes"
