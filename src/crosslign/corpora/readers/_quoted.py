"""Separated columns whose fields in double quotes may contain delimiters and line ends (RFC 4180)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from crosslign.corpora.readers._left_out import BROKEN, leave_out
from crosslign.corpora.readers._lines import LONGEST, read_lines
from crosslign.corpora.readers._parts import TextFile
from crosslign.errors import InputError

BAD = "\ud800"
"""Stands for bytes that are no text: no text holds half of a surrogate pair."""


def _marked(line: bytes) -> str:
    """Return a line with `BAD` for each byte that is no text: its quotes still say where its record ends."""
    return re.sub("[\udc80-\udcff]", BAD, line.replace(b"\0", b"\xff").decode("utf-8", "surrogateescape"))


def quoted_records(part: TextFile, delimiter: str = ",", *, skip_broken: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it begins, fields) of each record.

    Args:
        part: the file.
        delimiter: one character.
        skip_broken: leave out records with bytes that are no text, instead of refusing them.

    Raises:
        InputError: broken quoting, a field beyond `LONGEST`; names the line on which the record begins, since a quote that nothing
            closes goes on to the end of the file.
    """
    csv.field_size_limit(LONGEST)  # the library's own bound, of 128 kB, is for all files of a process
    lines = (text + "\n" for _, text in read_lines(part, broken=_marked if skip_broken else None))
    reader, start = csv.reader(lines, delimiter=delimiter, quotechar='"', doublequote=True, strict=True), 1
    try:
        for fields in reader:
            if skip_broken and any(BAD in text for text in fields):
                leave_out(BROKEN)
            else:
                yield start, fields
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError("broken quoting", where=part.at(start), why=f"{error}, on line {reader.line_num}") from error
