"""Monolingual text, one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._left_out import EMPTY, leave_out
from crosslign.corpora.readers._lines import check_text, read_lines
from crosslign.corpora.readers._parts import Members, Part, parts_of
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError


@READERS.register
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    file_langs: Mapping[str, str] | None = None,
    member: Members | None = None,
    skip_empty: bool = False,
) -> Iterator[pa.Table]:
    """Yield `mono` rows.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`.
        langs: languages to read.
        file_langs: language by file name; needed when there are several languages.
        member: member of each file that is an archive; `{lang}` in it stands for each language.
        skip_empty: leave lines without text out (CC-100 parts its documents by them) in place of refusing them.

    Raises:
        InputError: an empty line, or a file whose language nobody said.
    """
    parts = parts_of(files, langs, member, file_langs, corpus)
    yield from tables(_rows(parts, corpus, langs, skip_empty), "mono", ("id", "lang", "text"))


def _rows(parts: Sequence[Part], corpus: str, langs: Sequence[str], skip_empty: bool) -> Iterator[tuple[str, str, str]]:
    for part in parts:
        said = part.langs or tuple(langs)
        if len(said) != 1:
            raise InputError(f"the language of {part.name!r} is not known", where=corpus, do="Name it in `file_langs`")
        if said[0] in langs:
            for number, text in read_lines(part):
                if skip_empty and not text.strip():
                    leave_out(EMPTY)
                else:
                    yield f"{corpus}:{part.name}:{number}", said[0], check_text(text, part, number)
