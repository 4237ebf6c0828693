"""Monolingual text, one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._left_out import BROKEN, EMPTY, leave_out
from crosslign.corpora.readers._lines import left_after, read_columns, without_blank_end
from crosslign.corpora.readers._parts import Members, TextFile, parts_of
from crosslign.corpora.readers._tables import ROWS, line_ids, table_of
from crosslign.errors import InputError


@READERS.register(version=1, gives="mono")
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    file_langs: Mapping[str, str] | None = None,
    member: Members | None = None,
    skip_empty: bool = False,
    skip_broken: bool = False,
) -> Iterator[pa.Table]:
    """Yield `mono` rows.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`.
        langs: languages to read.
        file_langs: language by file name; needed when there are several languages.
        member: member of each file that is an archive; `{lang}` in it stands for each language.
        skip_empty: leave out empty lines (CC-100 separates documents by them), instead of refusing them.
        skip_broken: leave out lines that are not UTF-8 or have a NUL, instead of refusing them.

    Raises:
        InputError: an empty line, or a file whose language nobody said.
    """
    parts = parts_of(files, langs, member, file_langs, corpus)
    for part in parts:
        said = part.langs or tuple(langs)
        if len(said) != 1:
            raise InputError(f"the language of {part.name!r} is unknown", where=corpus, do="Name it in `file_langs`")
        if said[0] in langs:
            yield from _tables(part, corpus, said[0], skip_empty, skip_broken)


def _tables(part: TextFile, corpus: str, lang: str, skip_empty: bool, skip_broken: bool) -> Iterator[pa.Table]:
    number = 1
    for (texts,) in without_blank_end((column,) for column in read_columns(part, ROWS, skip_broken=skip_broken)):
        left = left_after(texts, skip_empty, part, number)
        leave_out(BROKEN, texts.null_count)
        leave_out(EMPTY, len(left) - int(left.sum()) - texts.null_count)
        columns = {"id": line_ids(f"{corpus}:{part.name}", number, len(texts)), "lang": pa.repeat(lang, len(texts)), "text": texts}
        number += len(texts)
        if left.any():
            table = table_of(columns, "mono")
            yield table if left.all() else table.filter(pa.array(left))
