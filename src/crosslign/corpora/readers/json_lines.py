"""JSON objects: one a line, as SNLI and MultiNLI have them, or the elements of one array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._fields import Field, Form, Kind, read_fields
from crosslign.corpora.readers._json import plain, records, value
from crosslign.corpora.readers._parts import Members, OneOrTwo, TextFile, parts_of
from crosslign.options import MinLen


@READERS.register(version=1)
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    columns: Annotated[Mapping[str, Field], MinLen(1)],
    kind: Kind = "labelled",
    labels: Mapping[str, float] | None = None,
    file_langs: Mapping[str, OneOrTwo] | None = None,
    member: Members | None = None,
    skip: Mapping[str, Sequence[str]] | None = None,
    skip_empty: bool = False,
    group_lines: bool = False,
) -> Iterator[pa.Table]:
    """Yield `mono`, `bitext` or `labelled` rows.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`.
        langs: as for `tsv`.
        columns: column of the corpus by key; a key of an inner object is written `outer.inner`.
        kind: as for `tsv`, and so are labels, file_langs, member, skip, skip_empty and group_lines.
        labels: number of each label by name; without it, labels are read as numbers.
        file_langs: one or two languages by file name.
        member: member of each file that is an archive.
        skip: values by key; a record that has one of them is left out.
        skip_empty: leave out records without a text.
        group_lines: rows of equal line number in the files are the same item in several languages.

    Raises:
        InputError: a line that is no JSON object, a key that is missing, an empty text, an unknown label (`file:line`).
    """
    form = Form(kind, columns, labels, skip or {}, skip_empty, group_lines)
    yield from read_fields(parts_of(files, langs, member, file_langs, corpus), _records, form, corpus, langs)


def _records(part: TextFile, wanted: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    for number, record in records(part):
        yield number, [plain(value(record, name, part.at(number)), name, part.at(number)) for name in wanted]
