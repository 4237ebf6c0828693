"""JSON files and JSON lines whose records must have certain keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from crosslign.corpora.readers._lines import read_lines
from crosslign.corpora.readers._parts import Part
from crosslign.errors import InputError
from crosslign.registry import nearest


def parse(text: str, place: str) -> Any:
    """Return what a JSON text holds.

    Raises:
        InputError: it is no JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("not JSON", where=place, why=str(error)[:120]) from error


def value(record: Any, key: str, place: str) -> Any:
    """Return the value of a key; a key of an inner object is written `outer.inner`.

    Raises:
        InputError: the record is no object or lacks it.
    """
    for part in key.split("."):
        if not isinstance(record, dict) or part not in record:
            raise InputError(f"no key {key!r}", where=place, why=nearest(part, [*record] if isinstance(record, dict) else []))
        record = record[part]
    return record


def records(part: Part, keys: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of JSON lines.

    Raises:
        InputError: a line that is no JSON object, or lacks one of the keys (`file:line`).
    """
    for number, line in read_lines(part):
        record = parse(line, part.at(number))
        if not isinstance(record, dict):
            raise InputError("not a JSON object", where=part.at(number), why=f"found {line[:60]}")
        for key in keys:
            value(record, key, part.at(number))
        yield number, record


def document(part: Part) -> Any:
    """Return the one JSON value of a file."""
    return parse("\n".join(text for _, text in read_lines(part)), part.at())
