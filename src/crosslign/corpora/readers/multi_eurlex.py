"""Training laws of MultiEURLEX with all their classes (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._laws import read_laws
from crosslign.corpora.readers._tables import tables

COLUMNS = ("id", "a_lang", "a_text", "label", "group")


@READERS.register(version=2, gives="labelled")
def read(files: Mapping[str, Path], corpus: str, langs: Sequence[str], *, split: str = "train") -> Iterator[pa.Table]:
    """Yield `labelled` rows: the text of a law in one language, and its classes of level 1; a law's texts share its group.

    Args:
        files: `<split>.jsonl`, or archives that hold it.
        corpus: id of the corpus; row ids are `<corpus>:<celex id>:<language>`.
        langs: languages to read.
        split: train, dev or test.

    Raises:
        InputError: as `crosslign.corpora.readers._laws` says.
    """
    rows = (
        (f"{corpus}:{law.id}:{lang}", lang, law.texts[lang], [float(number) for number in law.classes], law.id)
        for law in read_laws(files, split, corpus)
        for lang in langs
        if lang in law.texts
    )
    yield from tables(rows, "labelled", COLUMNS)
