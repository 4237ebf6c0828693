"""CSV files that a spreadsheet opens: a text stays a text there, and never becomes a formula.

A spreadsheet takes a field that begins with `=`, `+`, `-` or `@`, or with a wide form of them, for a formula and computes it. Such a
text is written with an apostrophe before it, which a spreadsheet reads as "this is text"; a number (`-0.5`, `+1.2`) stays as it is.
`read_csv` takes the apostrophe away again. See "CSV injection" of OWASP, owasp.org/www-community/attacks/CSV_Injection.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crosslign.errors import InputError
from crosslign.files.text import read_text

_STARTS = r"[=+\-@\t\r\n＝＋－＠]"
_FORMULA, _QUOTED = re.compile(f"'*{_STARTS}"), re.compile(f"'+{_STARTS}")


def is_number(text: str) -> bool:
    """Tell whether a text is one that `float` reads."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _field(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) and not is_number(value) else value


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the text of a CSV file with one line of column names; lines end in a line feed.

    Args:
        columns: the names of the columns.
        rows: the fields of each line, in the order of the columns.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in rows)
    return out.getvalue()


def read_csv(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns and the lines of a file that `as_csv` made, each field as it was given.

    Raises:
        InputError: it cannot be read, is no CSV, or a line has more or fewer fields than there are columns.
    """
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    lines = []
    try:
        for line in reader:
            if None in line or None in line.values():
                raise InputError("a line has more or fewer fields than the first", where=f"{path}:{reader.line_num}")
            lines.append({key: value[1:] if _QUOTED.match(value) else value for key, value in line.items()})
        return list(reader.fieldnames or ()), lines
    except csv.Error as error:
        raise InputError("not a CSV file", where=f"{path}:{reader.line_num}", why=str(error)) from error
