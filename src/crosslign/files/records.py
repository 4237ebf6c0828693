"""JSON in and out: sorted keys, numbers by repr, so that equal content is equal bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crosslign.errors import InputError
from crosslign.files.atomic import write_text
from crosslign.files.checksums import sha256_text
from crosslign.files.text import read_text

SEAL = "sum"
"""Key of a document's own checksum."""


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
    text = read_text(Path(path), do="Run the target that makes it")
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
    for number, line in enumerate(io.StringIO(read_text(Path(path))), start=1):
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise InputError("not valid JSON", where=f"{path}:{number}", why=str(error)[:120]) from error
    return rows
