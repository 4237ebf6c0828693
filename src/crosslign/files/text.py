"""Text files that a person may have put there, edited or damaged: as a whole, as JSON, as CSV.

JSON has sorted keys and numbers by repr, so that equal content is equal bytes. CSV is for spreadsheets, and a text stays a text there.
A spreadsheet takes a field that begins with `=`, `+`, `-` or `@`, or with a wide form of them, for a formula and computes it. Such a
text is written with an apostrophe before it, which a spreadsheet reads as "this is text"; a number (`-0.5`, `+1.2`) stays as it is.
`read_csv` takes the apostrophe away again. See "CSV injection" of OWASP, owasp.org/www-community/attacks/CSV_Injection.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.atomic import is_device, write_text
from crosslign.files.checksums import sha256_text

SEAL = "sum"
"""Key of a JSON document's own checksum."""
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
    where, path = str(shown or path), Path(path)  # parameters of a job are texts
    try:
        if is_device(path):
            raise InputError("cannot be read", where=where, why="it is a pipe or a device, not a file")
        if (size := path.stat().st_size) > LARGEST:
            raise InputError("the file is too large", where=where, why=f"{number_of(size, 'byte')}, the limit is {LARGEST:,}")
        return path.read_bytes().decode(encoding)
    except FileNotFoundError as error:
        raise InputError("file is missing", where=where, do=do) from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", where=where, why=str(error)) from error
    except (OSError, ValueError) as error:
        raise InputError("cannot be read", where=where, why=str(getattr(error, "strerror", None) or error)) from error


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return what JSON can hold with every value that is neither a mapping nor a list changed."""
    if isinstance(value, Mapping):
        return {key: mapped(inner, change) for key, inner in value.items()}
    return [mapped(inner, change) for inner in value] if isinstance(value, list | tuple) else change(value)


def write_json(path: Path, content: Any) -> None:
    """Write JSON with sorted keys, two-space indent and a final newline; NaN and infinity are refused."""
    write_text(path, json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read one JSON document.

    Raises:
        InputError: the file is missing, cannot be read, is not UTF-8 or not JSON; the message names file and line.
    """
    text = read_text(path, do="Run the target that makes it")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError("not valid JSON", where=f"{path}:{error.lineno}", why=error.msg) from error
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets within each other
        raise InputError("not valid JSON", where=str(path), why=str(error)[:120]) from error


def read_mapping(path: Path, or_empty: bool = False) -> dict[str, Any]:
    """Read one JSON document that is a mapping, or with `or_empty` return an empty one where no file is; errors of `read_json` besides."""
    content = {} if or_empty and not path.is_file() else read_json(path)
    if not isinstance(content, dict):
        raise InputError("not a mapping of keys", where=str(path), why=f"found {str(content)[:40]!r}")
    return content


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON mapping with its own checksum, for what a later process goes on with and no lineage describes."""
    plain = json.loads(json.dumps(content))
    write_json(path, {**plain, SEAL: _sum_of(plain)})


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what `write_sealed` wrote; one of before there were checksums is taken as it is.

    Raises:
        InputError: as `read_mapping`, or its content is not the one that was written.
    """
    content = read_mapping(path)
    if content.pop(SEAL, None) not in (None, _sum_of(content)):
        raise InputError("the file is damaged or was changed", where=str(path), why="its checksum does not match its content")
    return content


def _sum_of(content: Any) -> str:
    return sha256_text(json.dumps(content, sort_keys=True))


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Read one JSON object a line; an error names file and line."""
    rows = []
    for number, line in enumerate(io.StringIO(read_text(path)), start=1):
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise InputError("not valid JSON", where=f"{path}:{number}", why=str(error)[:120]) from error
    return rows


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
