"""SHA-256 of texts, files and folders, as lower-case hexadecimal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from crosslign.files.walk import files_below


def sha256_text(text: str) -> str:
    """Return the SHA-256 of the UTF-8 bytes of `text`."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_summed(source: Path, dest: Path, size: int | None = None) -> str:
    """Copy a file, or its first `size` bytes, and return the SHA-256 of these, which are read once."""
    digest, left = hashlib.sha256(), source.stat().st_size if size is None else size
    with open(source, "rb") as read, open(dest, "wb") as out:
        while chunk := read.read(min(left, 1 << 20)):
            digest.update(chunk)
            out.write(chunk)
            left -= len(chunk)
    return digest.hexdigest()


def sha256_folder(path: Path, files: Iterable[Path] | None = None) -> str:
    """Return the SHA-256 of a folder: that of its sorted (relative path, sha256) list, or that of some of its files.

    What is hidden or half-written, and `lineage.json`, is left out: lineage names this sum, so it cannot be part of it.
    """
    read = files_below(path) if files is None else files
    lines = [f"{file.relative_to(path).as_posix()} {sha256_file(file)}\n" for file in read if file.name != "lineage.json"]
    return sha256_text("".join(lines))
