r"""Lines of text, read by one policy.

- Only `\n` ends a line; `\r\n` is accepted for it. U+2028, U+0085 and a lone `\r` are text.
- A byte order mark at the start of the file is dropped.
- Bytes that are no UTF-8, NUL, and a line of more than 64 MiB are an error that names file and line.
- `.gz`, `.bz2`, `.xz` and `.zst`, and members of archives, are unpacked on the way; an empty file is an error.
- A line without text is yielded: the reader decides, and mostly refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from crosslign.corpora.readers._parts import Part, open_part
from crosslign.corpora.unpacking import AGAIN
from crosslign.errors import InputError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST = 1 << 26
"""Bytes of a line, as unpacked: some kilobytes of a packed file could else fill all memory."""


def read_lines(source: Path | Part) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of a file or of a member of an archive, without the line's end.

    Raises:
        InputError: the file is missing, empty, damaged, not UTF-8, holds NUL or a line beyond `LONGEST`; the place is `file:line`.
    """
    part = source if isinstance(source, Part) else Part(source.name, source)
    number = 0
    with open_part(part) as stream:
        for number, raw in enumerate(iter(partial(stream.readline, LONGEST + 1), b""), start=1):
            if len(raw) > LONGEST:
                raise InputError(f"a line of more than {LONGEST:,} bytes", where=part.at(number), why="the file is not text in lines")
            line = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
            if line.endswith(b"\n"):
                line = line[:-1].removesuffix(b"\r")
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    "not UTF-8", where=part.at(number), why=f"byte {error.object[error.start]:#04x} at column {error.start + 1}"
                ) from error
            if "\0" in text:
                raise InputError("a NUL character", where=part.at(number), why="the file is not plain UTF-8 text")
            yield number, text
    if not number:
        raise InputError("the file is empty", where=part.at(), do=AGAIN)


def check_text(text: Any, source: Path | Part, number: int, what: str = "line") -> str:
    """Return `text` as it is.

    Raises:
        InputError: it is empty or white space only, or no text, as a value of JSON may be.
    """
    if isinstance(text, str) and text.strip():
        return text
    where = source.at(number) if isinstance(source, Part) else f"{source}:{number}"
    if isinstance(text, str):
        raise InputError(f"the {what} is empty", where=where)
    raise InputError(f"the {what} is no text", where=where, why=f"found {text!r}"[:80])


def first_missing(lines: Mapping[Path | Part, int]) -> str:
    """Return the place, `file:line`, where the shortest of several files lacks a line; `lines` holds the number of each."""
    source, number = min(lines.items(), key=lambda item: item[1])
    return source.at(number + 1) if isinstance(source, Part) else f"{source}:{number + 1}"
