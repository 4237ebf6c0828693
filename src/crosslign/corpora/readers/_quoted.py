"""Separated columns whose fields in double quotes may contain delimiters and line ends (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from crosslign.corpora.readers._lines import LONGEST, read_lines
from crosslign.corpora.readers._parts import TextFile
from crosslign.errors import InputError


def quoted_records(part: TextFile, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it begins, fields) of each record.

    Raises:
        InputError: broken quoting, a field beyond `LONGEST`; names the line on which the record begins, since a quote that nothing
            closes goes on to the end of the file.
    """
    csv.field_size_limit(LONGEST)  # the library's own bound, of 128 kB, is for all files of a process
    lines = (text + "\n" for _, text in read_lines(part))
    reader, start = csv.reader(lines, delimiter=delimiter, quotechar='"', doublequote=True, strict=True), 1
    try:
        for fields in reader:
            yield start, fields
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError("broken quoting", where=part.at(start), why=f"{error}, on line {reader.line_num}") from error
