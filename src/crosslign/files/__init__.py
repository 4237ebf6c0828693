"""Reading and writing that can be believed: whole files only, checksums, lineage."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crosslign.files.atomic import atomic_folder, atomic_path, write_text
from crosslign.files.checksums import sha256_file, sha256_folder, sha256_text
from crosslign.files.text import read_json, read_json_lines, read_mapping, write_json

if TYPE_CHECKING:
    from crosslign.files.rows import head_of, iter_rows, read_rows, write_batches, write_rows

__all__ = [
    "atomic_folder",
    "atomic_path",
    "head_of",
    "iter_rows",
    "read_json",
    "read_json_lines",
    "read_mapping",
    "read_rows",
    "sha256_file",
    "sha256_folder",
    "sha256_text",
    "write_batches",
    "write_json",
    "write_rows",
    "write_text",
]


def __getattr__(name: str) -> Any:
    """Return what reads and writes rows: pyarrow is imported for it, which the start of a command or of a job's workflow does without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.rows"), name)
