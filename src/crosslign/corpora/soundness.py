"""Whether a file that no checksum vouches for can be what it is called: its first bytes, its size, and all that it unpacks to."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from crosslign.config.catalog import off
from crosslign.corpora.archives import TAR_SUFFIXES, read_through
from crosslign.corpora.sources._pages import PAGE_BEGINS, PAGES, is_page
from crosslign.corpora.unpacking import FORMATS, MAGIC
from crosslign.entries.catalog import File
from crosslign.errors import InputError
from crosslign.files.rows import parquet_file

BEGINS = {**{suffix: magic for magic, suffix in MAGIC.items()}, ".zip": b"PK", ".whl": b"PK", ".parquet": b"PAR1"}
"""What a file of each suffix begins with."""
ROWS = 1024
"""Rows of a Parquet file that are unpacked at once; each may be an article."""


def unsound(path: Path, file: File) -> str:
    """Return what is wrong with a file of the catalog that has no checksum; empty where nothing is.

    Args:
        path: where it lies, under any name.
        file: the catalog's entry: its name, and `about_bytes` where that is known.
    """
    name = str(file["name"])
    with open(path, "rb") as stream:
        begins = stream.read(PAGE_BEGINS)
    if is_page(begins) and not name.endswith(PAGES):
        return "it is a web page"
    suffix = Path(name).suffix
    magic = BEGINS.get(FORMATS.get(suffix, suffix), b"")
    if not begins.startswith(magic):
        return f"its first bytes are not those of a {suffix} file: {begins[:8]!r}"
    if "head" not in file and (why := off(path.stat().st_size, file)):
        return why
    return _damage(path, name) if magic or name.endswith(TAR_SUFFIXES) else ""


def _damage(path: Path, name: str) -> str:
    """Unpack a file to its last byte, and return what is wrong with it."""
    if name.endswith(".parquet"):
        try:
            with parquet_file(path, page_checksum_verification=True) as file:
                for _ in file.iter_batches(ROWS):
                    pass
        except (pa.ArrowException, OSError) as error:
            return f"damaged: {error}"
        return ""
    with tempfile.TemporaryDirectory(prefix="crosslign-") as folder:
        named = Path(folder, Path(name).name)
        named.symlink_to(path.absolute())
        try:
            read_through(named)
        except InputError as error:
            return f"damaged: {error.why or error.what}"
    return ""
