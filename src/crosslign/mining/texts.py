"""A user's own monolingual file as an evaluation corpus: one sentence a line, equal ones once, line numbers kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from crosslign.console import number_of
from crosslign.corpora.dedup import KeySet, digests
from crosslign.corpora.readers._lines import read_lines
from crosslign.errors import InputError
from crosslign.files import write_batches
from crosslign.mining.dedup import Dedup

BATCH = 16_384
"""Lines that are read and compared at a time."""


def read_sentences(file: Path, lang: str, out: Path, dedup: Dedup, limit: int | None = None) -> dict[str, int]:
    """Write the sentences of a file as rows of the kind `texts`; `text_id` is the line number, counted from 1.

    Lines of white space are passed over, white space at both ends is cut off. Memory: 24 bytes a sentence, and one batch.

    Args:
        file: UTF-8 text, plain or packed as `.gz`, `.bz2`, `.xz` or `.zst`.
        lang: language of all its sentences.
        out: Parquet file, written whole or not at all.
        dedup: `text` keeps the first of equal sentences; `id` keeps all.
        limit: lines that are read at most; all when None.

    Returns:
        lines, empty, repeated and sentences: how many were read, had no text, were there before, and are written.

    Raises:
        InputError: the file is missing, a folder, damaged, no UTF-8, or holds no sentence; names file and line.
    """
    if file.is_dir():
        raise InputError("a folder, not a file of sentences", where=str(file))
    counts = {"lines": 0, "empty": 0, "repeated": 0, "sentences": 0}
    try:
        write_batches(out, _tables(file, lang, dedup, limit, counts), "texts")
    except InputError as error:
        # Readers of the catalog's files advise to delete a damaged one; nothing brings a user's own file back.
        raise InputError(error.what, where=error.where, why=error.why, do="Mend or replace the file" if error.do else "") from error
    return counts


def _tables(file: Path, lang: str, dedup: Dedup, limit: int | None, counts: dict[str, int]) -> Iterator[pa.Table]:
    seen = KeySet()
    lines = islice(read_lines(file), limit)
    while batch := list(islice(lines, BATCH)):
        rows = [(str(number), text.strip()) for number, text in batch if text.strip()]
        counts["lines"] += len(batch)
        counts["empty"] += len(batch) - len(rows)
        if dedup == "text" and rows:
            new = seen.insert(digests(pa.array([text for _, text in rows])))
            counts["repeated"] += len(rows) - int(new.sum())
            rows = [row for row, is_new in zip(rows, new, strict=True) if is_new]
        counts["sentences"] += len(rows)
        numbers, texts = ([row[at] for row in rows] for at in (0, 1))
        yield pa.table({"text_id": pa.array(numbers, pa.string()), "lang": [lang] * len(rows), "text": pa.array(texts, pa.string())})
    if not counts["sentences"]:
        raise InputError("no sentence in this file", where=str(file), why=f"{number_of(counts['lines'], 'line')}, all empty")
