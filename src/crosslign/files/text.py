"""Text files that a person may have put there, edited or damaged."""

from __future__ import annotations

from pathlib import Path

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.walk import is_plain

LARGEST = 1 << 30
"""Bytes of the largest file that is read as a whole: more than any that is meant for it, and less than the memory of a machine."""


def read_text(path: Path, shown: Path | None = None, do: str = "", encoding: str = "utf-8") -> str:
    """Return what a text file holds, its line ends as they are.

    Args:
        path: the file.
        shown: the name that messages use, where it differs (relative to the project).
        do: what to do where it is missing.
        encoding: `utf-8`, or `utf-8-sig` of what spreadsheets write.

    Raises:
        InputError: it is missing, no file (to open a pipe waits for whoever writes into it), not UTF-8, or cannot be read; names it.
    """
    where = str(shown or path)
    try:
        if not is_plain(path) and path.exists():
            raise InputError("cannot be read", where=where, why="it is a pipe or a device, not a file")
        if (size := Path(path).stat().st_size) > LARGEST:
            raise InputError("the file is too large", where=where, why=f"{number_of(size, 'byte')}, the limit is {LARGEST:,}")
        return Path(path).read_bytes().decode(encoding)
    except FileNotFoundError as error:
        raise InputError("file is missing", where=where, do=do) from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", where=where, why=str(error)) from error
    except (OSError, ValueError) as error:
        raise InputError("cannot be read", where=where, why=str(getattr(error, "strerror", None) or error)) from error
