"""JSON files and JSON lines whose records must have certain keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from crosslign.corpora.readers._lines import read_lines
from crosslign.corpora.readers._parts import TextFile, open_part
from crosslign.corpora.unpacking import CHUNK
from crosslign.errors import InputError
from crosslign.registry import nearest

LARGEST = 1 << 28
"""Bytes of a JSON file that is one value, as unpacked; it is held in memory."""


def parse(text: str | bytearray, place: str) -> Any:
    """Return what a JSON text, in UTF-8 where it is bytes, holds.

    Raises:
        InputError: it is no JSON.
    """
    try:
        return json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError("not JSON", where=place, why=str(error)[:120]) from error


def value(record: Any, key: str, place: str) -> Any:
    """Return the value of a key; a key of an inner object is written `outer.inner`.

    Raises:
        InputError: the record is not an object or lacks it.
    """
    for part in key.split("."):
        if not isinstance(record, dict) or part not in record:
            raise InputError(f"no key {key!r}", where=place, why=nearest(part, [*record] if isinstance(record, dict) else []))
        record = record[part]
    return record


def plain(found: Any, key: str, place: str) -> str:
    """Return the text of a key's value, or its number written out.

    Raises:
        InputError: it is neither.
    """
    if isinstance(found, str):
        return found
    if isinstance(found, int | float) and not isinstance(found, bool):
        return repr(float(found)) if isinstance(found, float) else str(int(found))
    raise InputError(f"key {key!r} has neither text nor a number", where=place, why=f"found {str(found)[:60]}")


@contextmanager
def in_form(of: str, place: str) -> Iterator[None]:
    """Turn what values of another type than expected lead to into an error that names the place.

    Args:
        of: the form that was expected, for messages.
        place: the file, or the line of it.

    Raises:
        InputError: a value in the `with` block was not of that form.
    """
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"not in the format of {of}", where=place, why=f"{type(error).__name__} {error}") from error


def records(part: TextFile, keys: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of JSON lines, or of a file that is one JSON array, then numbered by its elements; blank lines are none.

    Raises:
        InputError: a line or an element that is no JSON object, or lacks one of the keys (`file:line`).
    """
    for number, record in values(part):
        if not isinstance(record, dict):
            raise InputError("not a JSON object", where=part.at(number), why=f"found {json.dumps(record, ensure_ascii=False)[:60]}")
        for key in keys:
            value(record, key, part.at(number))
        yield number, record


def values(part: TextFile) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) of JSON lines, one a line, or of a file that is one JSON array; blank lines are passed over.

    Raises:
        InputError: a line that is no JSON, an array that does not end, or is larger than `LARGEST`.
    """
    first = True
    for number, line in read_lines(part):
        if not line.strip():
            continue
        if first and line.lstrip().startswith("[") and not _is_whole(line):
            yield from enumerate(_elements(part), start=1)
            return
        found = parse(line, part.at(number))
        yield from enumerate(found, start=1) if first and isinstance(found, list) else [(number, found)]
        first = False


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _elements(part: TextFile) -> list[Any]:
    found = document(part)
    if not isinstance(found, list):
        raise InputError("neither JSON lines nor a JSON array", where=part.at(), why=f"found {type(found).__name__}")
    return found


def document(part: TextFile) -> Any:
    """Return the one JSON value of a file.

    Raises:
        InputError: it is no JSON in UTF-8, or larger than `LARGEST`.
    """
    content = bytearray()
    with open_part(part) as stream:
        while chunk := stream.read(CHUNK):
            content += chunk
            if len(content) > LARGEST:
                raise InputError(f"the JSON file has more than {LARGEST:,} bytes", where=part.at())
    return parse(content, part.at())
