"""JSON in and out: sorted keys, numbers by repr, so that equal content is equal bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crosslign.errors import InputError
from crosslign.files.atomic import write_text
from crosslign.files.walk import is_plain


def write_json(path: Path, content: Any) -> None:
    """Write JSON with sorted keys, two-space indent and a final newline; NaN and infinity are refused."""
    write_text(path, json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read one JSON document.

    Raises:
        InputError: the file is missing, cannot be read, is not UTF-8 or not JSON; the message names file and line.
    """
    if Path(path).exists() and not is_plain(Path(path)):  # to open a pipe waits for whoever writes into it
        raise InputError("cannot be read", where=str(path), why="a pipe or a device, not a file")
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError("file is missing", where=str(path), do="Run the target that makes it") from error
    except json.JSONDecodeError as error:
        raise InputError("not valid JSON", where=f"{path}:{error.lineno}", why=error.msg) from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", where=str(path), why=str(error)) from error
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets within each other
        raise InputError("not valid JSON", where=str(path), why=str(error)[:120]) from error
    except OSError as error:
        raise InputError("cannot be read", where=str(path), why=str(error.strerror)) from error


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Read one JSON object a line; an error names file and line."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise InputError("not valid JSON", where=f"{path}:{number}", why=error.msg) from error
    return rows
