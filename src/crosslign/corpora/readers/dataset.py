"""Files of data sets on the hub, Parquet or Arrow, as the library datasets opens them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._fields import Field, Form, Kind, read_fields
from crosslign.corpora.readers._json import plain, value
from crosslign.corpora.readers._parts import OneOrTwo, TextFile, parts_of
from crosslign.corpora.unpacking import AGAIN
from crosslign.errors import InputError
from crosslign.options import MinLen
from crosslign.registry import nearest

FORMATS = {".parquet": "parquet", ".arrow": "arrow"}


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
    skip: Mapping[str, Sequence[str]] | None = None,
    skip_empty: bool = False,
    group_lines: bool = False,
) -> Iterator[pa.Table]:
    """Yield `mono`, `bitext` or `labelled` rows.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<row>`, counted from 1.
        langs: as for `tsv`.
        columns: column of the corpus by column of the file; one inside another is written `translation.de`. A class is its number.
        kind: as for `tsv`, and so are labels, file_langs, skip, skip_empty and group_lines.
        labels: number of each label by name; without it, labels are read as numbers.
        file_langs: one or two languages by file name.
        skip: values by column; a row that has one of them is left out.
        skip_empty: leave out rows without a text.
        group_lines: rows of equal number in the files are the same item in several languages.

    Raises:
        InputError: a file of another format, or a damaged one; a column that is missing, an empty text, an unknown label (`file:row`).
    """
    form = Form(kind, columns, labels, skip or {}, skip_empty, group_lines)
    yield from read_fields(parts_of(files, langs, None, file_langs, corpus), _records, form, corpus, langs)


def _records(part: TextFile, wanted: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    from datasets import load_dataset  # takes a second

    suffix = part.path.suffix
    if suffix not in FORMATS:
        raise InputError("unknown file format", where=part.at(), why=nearest(suffix, list(FORMATS)))
    try:
        with TemporaryDirectory() as cache:  # it asks for one, and a job may not write into the user's
            rows = load_dataset(FORMATS[suffix], data_files=[escape(str(part.path))], split="train", streaming=True, cache_dir=cache)
            for number, row in enumerate(rows, start=1):
                found = (value(row, name, part.at(number)) for name in wanted)
                yield number, ["" if one is None else plain(one, name, part.at(number)) for one, name in zip(found, wanted, strict=True)]
    except (pa.ArrowException, OSError, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"not a readable {FORMATS[suffix].title()} file", where=part.at(), why=why, do=AGAIN) from error
