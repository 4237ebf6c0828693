"""A user's own monolingual files as an evaluation corpus: sentences in their order, equal ones once, with their places.

A place is `line`, in one file of sentences; `line.sentence` where documents were split; either behind `file:` where there are several.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa

from crosslign.console import number_of
from crosslign.corpora.dedup import KeySet, digests
from crosslign.corpora.readers._json import records, value
from crosslign.corpora.readers._lines import read_lines
from crosslign.corpora.readers._parquet import read_texts
from crosslign.corpora.readers._parts import TextFile, bare_name
from crosslign.corpora.readers._prose import sentences
from crosslign.errors import InputError
from crosslign.files import write_batches
from crosslign.mining.dedup import Dedup

BATCH = 16_384
"""Sentences that are read and compared at a time."""
COLUMN = "text"
"""Column or key of the texts where nobody named one."""
JSON = (".jsonl", ".ndjson", ".json")
NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What JSON and Parquet can hold and no sentence has: NUL and half characters."""
NAME_IT = "Name the column or key of the texts: `column:`, or --columns"
NO_COLUMN = "Name a column only for .parquet and .jsonl (`text` means none)"


def read_sentences(
    files: Sequence[Path],
    lang: str,
    out: Path,
    dedup: Dedup,
    limit: int | None = None,
    *,
    column: str | None = None,
    split: bool = False,
) -> dict[str, int]:
    """Write the sentences of one side as rows of the kind `texts`; `text_id` is the place, lines are counted from 1.

    Lines of white space are passed over, white space at both ends is cut off. Memory: 24 bytes a sentence, and one batch.

    Args:
        files: read one after the other. `.parquet`: a text a row; `.jsonl`, `.ndjson` or `.json`: a text an object; all others: UTF-8
            text, a line each. Text and JSON may be packed as `.gz`, `.bz2`, `.xz` or `.zst`.
        lang: language of all sentences.
        out: Parquet file, written whole or not at all.
        dedup: `text` keeps the first of equal sentences; `id` keeps all.
        limit: lines, objects or rows that are read at most; all when None.
        column: column or key of the texts, `text` when None; one inside another is written `translation.de`.
        split: each text is a document, cut into sentences.

    Returns:
        lines, empty, repeated, sentences: how many texts were read and had no text, sentences that were there before, and are written;
        and files, where there are several.

    Raises:
        InputError: a file is missing, a folder, damaged, no UTF-8, or lacks the column; none holds a sentence; names file and line.
    """
    counts = {**({"files": len(files)} if len(files) > 1 else {}), "lines": 0, "empty": 0, "repeated": 0, "sentences": 0}
    try:
        texts = _texts(files, column, limit)
        write_batches(out, _tables(files, _sentences(texts, split, counts), lang, dedup, counts), "texts")
    except InputError as error:
        # Readers of the catalog's files advise to delete a damaged one; nothing brings a user's own file back.
        do = "Fix or replace the file" if error.do and error.do not in (NAME_IT, NO_COLUMN) else error.do
        raise InputError(error.what, where=error.where, why=error.why, do=do) from error
    return counts


def _texts(files: Sequence[Path], column: str | None, limit: int | None) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of each line, object or row."""
    above = os.path.commonpath([file.parent for file in files]) if len(files) > 1 else ""
    read = ((f"{os.path.relpath(file, above)}:" if above else "", text) for file in files for text in _numbered(file, column))
    yield from islice(((f"{before}{number}", text) for before, (number, text) in read), limit)


def _numbered(file: Path, column: str | None) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text) of a file's lines, objects or rows; an object or row without one has an empty text.

    Raises:
        InputError: those of `read_sentences`.
    """
    if file.is_dir():
        raise InputError("it is a folder, not a file of sentences", where=str(file))
    if file.suffix == ".parquet":
        rows = (text for (texts,) in read_texts(file, column or COLUMN, do=NAME_IT) for text in texts)
        yield from ((number, _checked(text, f"{file}:{number}")) for number, text in enumerate(rows, start=1))
    elif bare_name(file.name).endswith(JSON):
        for number, record in records(TextFile(file.name, file)):
            yield number, _checked(_value(record, column or COLUMN, f"{file}:{number}"), f"{file}:{number}")
    elif column not in (None, COLUMN):
        raise InputError("a file of lines has no columns", where=str(file), why=f"found column {column!r}", do=NO_COLUMN)
    else:
        yield from read_lines(file, blank_end=True)


def _value(record: object, key: str, place: str) -> object:
    try:
        return value(record, key, place)
    except InputError as error:
        raise InputError(error.what, where=error.where, why=error.why, do=NAME_IT) from error


def _checked(text: object, place: str) -> str:
    if text is None:
        return ""
    if not isinstance(text, str):
        raise InputError("a value is not text", where=place, why=f"found {text!r}"[:80], do=NAME_IT)
    if NO_TEXT.search(text):
        raise InputError("a NUL character or half of a surrogate pair", where=place, why="a sentence cannot contain it")
    return text


def _sentences(texts: Iterator[tuple[str, str]], split: bool, counts: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield (place, sentence), and count what was read and what was empty."""
    for place, text in texts:
        counts["lines"] += 1
        if not (text := text.strip()):
            counts["empty"] += 1
        elif split:
            yield from ((f"{place}.{number}", sentence) for number, sentence in enumerate(sentences(text), start=1))
        else:
            yield place, text


def _tables(files: Sequence[Path], found: Iterator[tuple[str, str]], lang: str, dedup: Dedup, counts: dict[str, int]) -> Iterator[pa.Table]:
    seen = KeySet()
    while rows := list(islice(found, BATCH)):
        if dedup == "text":
            new = seen.insert(digests(pa.array([text for _, text in rows])))
            counts["repeated"] += len(rows) - int(new.sum())
            rows = [row for row, is_new in zip(rows, new, strict=True) if is_new]
        counts["sentences"] += len(rows)
        places, texts = ([row[at] for row in rows] for at in (0, 1))
        yield pa.table({"text_id": pa.array(places, pa.string()), "lang": [lang] * len(rows), "text": pa.array(texts, pa.string())})
    if not counts["sentences"]:
        where = ", ".join(map(str, files))
        raise InputError("no sentence in this file", where=where, why=f"found {number_of(counts['lines'], 'line')}, all empty")
