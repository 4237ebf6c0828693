"""Text files that a person may have put there, edited or damaged; and CSV files that a spreadsheet opens: a text stays a text there.

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

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.walk import is_plain

LARGEST = 1 << 30
"""Bytes of the largest file that is read as a whole: more than any that is meant for it, and less than the memory of a machine."""
_STARTS = r"[=+\-@\t\r\n＝＋－＠]"
_FORMULA, _QUOTED = re.compile(f"'*{_STARTS}"), re.compile(f"'+{_STARTS}")


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


def is_number(text: str) -> bool:
    """Tell whether a text is one that `float` reads."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _field(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) and not is_number(value) else value


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
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
    """Return the columns and the lines of a file that `csv_of` made, each field as it was given.

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
