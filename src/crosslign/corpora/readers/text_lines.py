"""Monolingual text, one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._lines import check_text, read_lines
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError


@READERS.register
def read(
    files: Mapping[str, Path], corpus: str, langs: Sequence[str], *, file_langs: Mapping[str, str] | None = None
) -> Iterator[pa.Table]:
    """Yield `mono` rows.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`.
        langs: languages to read.
        file_langs: language by file name; needed when there are several languages.

    Raises:
        InputError: an empty line, or a file whose language nobody said.
    """
    yield from tables(_rows(files, corpus, langs, file_langs or {}), "mono", ("id", "lang", "text"))


def _rows(files: Mapping[str, Path], corpus: str, langs: Sequence[str], file_langs: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, path in files.items():
        lang = file_langs.get(name) or (langs[0] if len(langs) == 1 else None)
        if lang is None:
            raise InputError(f"the language of {name!r} is not known", where=corpus, do="Name it in `file_langs`")
        if lang in langs:
            for number, text in read_lines(path):
                yield f"{corpus}:{name}:{number}", lang, check_text(text, path, number)
