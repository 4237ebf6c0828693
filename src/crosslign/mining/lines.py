"""The line of a user's file whose vector cannot be used; apart from what reads the file, so that a changed reader repeats no search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.vectors import VectorError


def with_line(error: VectorError, texts: Mapping[Path, Path]) -> InputError:
    """Return the error with the line of the user's file whose vector it is.

    Args:
        error: names a matrix and a row of it.
        texts: by matrix, the rows of kind `texts` that it was made of: `text_id` is the line number, the file is called as its side.
    """
    rows = next((rows for matrix, rows in texts.items() if matrix.resolve() == Path(error.matrix).resolve()), None)
    if rows is None:
        return error
    line = read_rows(rows)["text_id"][error.row].as_py()
    where = f"{error.matrix}, row {error.row} (line {line} of the {rows.stem} file)"
    return InputError(error.what, where=where, do="Remove that line, or encode with another precision")
