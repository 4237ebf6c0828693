"""Files of data sets on the hub or of one's own, as the builders of the library datasets open them: without network, row after row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Annotated, Any

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.archives import read_through
from crosslign.corpora.readers._fields import Field, Form, Kind, read_fields
from crosslign.corpora.readers._json import plain, records, value
from crosslign.corpora.readers._lines import read_lines
from crosslign.corpora.readers._parts import OneOrTwo, TextFile, bare_name, is_archive, parts_of
from crosslign.corpora.unpacking import AGAIN, PACKED
from crosslign.errors import InputError
from crosslign.files.temporary import temporary_folder
from crosslign.options import MinLen
from crosslign.registry import nearest

FORMATS = {
    **{".parquet": "Parquet", ".arrow": "Arrow", ".csv": "CSV", ".tsv": "CSV"},
    **{".json": "JSON", ".jsonl": "JSON", ".ndjson": "JSON", ".txt": "text"},
}
"""Forms by what a file's name ends in: in lower case, all but the last are builders of datasets."""


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
        columns: column of the corpus by column of the file; one inside another is written `translation.de`, that of a text file `text`.
            A class is its number.
        kind: as for `tsv`, and so are labels, file_langs, skip, skip_empty and group_lines.
        labels: number of each label by name; without it, labels are read as numbers.
        file_langs: one or two languages by file name.
        skip: values by column; a row that has one of them is left out.
        skip_empty: leave out rows without a text.
        group_lines: rows of equal number in the files are the same item in several languages.

    Raises:
        InputError: a file of another format, or a damaged one; a column that is missing, an empty text, an unknown label (`file:row`).
    """
    if archive := next(filter(is_archive, files), ""):
        do = f"Unpack it: `dataset` reads single files, also packed alone ({', '.join(PACKED)})"
        raise InputError(f"{archive!r} is an archive", where=corpus, do=do)
    form = Form(kind, columns, labels, skip or {}, skip_empty, group_lines)
    yield from read_fields(parts_of(files, langs, None, file_langs, corpus), _records, form, corpus, langs)


def _records(part: TextFile, wanted: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    suffix = PurePath(bare_name(part.path.name)).suffix
    if suffix not in FORMATS:
        raise InputError("unknown file format", where=part.at(), why=nearest(suffix, list(FORMATS)))
    if FORMATS[suffix] == "text":  # the builder of datasets reads packed text in the encoding of the locale
        rows: Iterator[Mapping[str, Any]] = ({"text": line} for _, line in read_lines(part))
    else:
        rows = _opened(part, FORMATS[suffix], {"sep": "\t"} if suffix == ".tsv" else {}, wanted)
    for number, row in enumerate(rows, start=1):
        found = (row[name] if name in row else value(row, name, part.at(number)) for name in wanted)
        yield number, ["" if one is None else plain(one, name, part.at(number)) for one, name in zip(found, wanted, strict=True)]


def _opened(part: TextFile, form: str, options: dict[str, Any], wanted: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a file as datasets streams them; where it cannot, the line that is to blame is named, if there is one."""
    from datasets import load_dataset  # takes a second

    if part.path.suffix == ".zst" and find_spec("zstandard") is None:
        raise InputError("datasets cannot unpack it", where=part.at(), do="Install the package zstandard, or unpack the file")
    if part.path.suffix in PACKED:
        read_through(part.path)  # datasets takes a stream of zstd that is cut for a whole one
    if form == "CSV":  # 007 is no number, and NA is not missing
        options |= {"na_filter": False, "converters": dict.fromkeys(wanted, str)}
    try:
        with temporary_folder("crosslign-cache-") as cache:  # it asks for one, and a job may not write into the user's
            address = escape(str(part.path))
            yield from load_dataset(form.lower(), data_files=[address], split="train", streaming=True, cache_dir=cache, **options)
    except (pa.ArrowException, OSError, ValueError) as error:
        if form in ("CSV", "JSON"):
            for _ in records(part) if form == "JSON" else read_lines(part):
                pass
        why = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"not a readable {form} file", where=part.at(), why=why, do=AGAIN) from error
