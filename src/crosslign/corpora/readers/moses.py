"""Bitext as Moses has it: two files, aligned line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._lines import check_text, read_lines
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError

PACKED = (".gz", ".bz2", ".xz", ".zst")


@READERS.register
def read(files: Mapping[str, Path], corpus: str, langs: Sequence[str]) -> Iterator[pa.Table]:
    """Yield `bitext` rows of two files whose names end in their language (`news.de-en.de`, `news.de-en.en.gz`).

    Args:
        files: path by catalog name.
        corpus: id of the corpus; row ids are `<corpus>:<first file>:<line>`.
        langs: the two languages, first and second side.

    Raises:
        InputError: a side is empty (`file:line`), or the files have unequal numbers of lines (both counts).
    """
    if len(langs) != 2:
        raise InputError("a bitext has two languages", where=corpus, why=f"found {list(langs)}")
    first, second = (_file_of(files, lang, corpus) for lang in langs)
    columns = ("id", "a_lang", "a_text", "b_lang", "b_text")
    yield from tables(_rows(files, first, second, corpus, langs), "bitext", columns)


def _file_of(files: Mapping[str, Path], lang: str, corpus: str) -> str:
    found = [name for name in files if any(name.endswith(f".{lang}{packed}") for packed in ("", *PACKED))]
    if len(found) != 1:
        raise InputError(f"one file must end in .{lang}", where=corpus, why=f"found {found} among {sorted(files)}")
    return found[0]


def _rows(files: Mapping[str, Path], first: str, second: str, corpus: str, langs: Sequence[str]) -> Iterator[tuple[str, ...]]:
    a_path, b_path = files[first], files[second]
    for a, b in zip_longest(read_lines(a_path), read_lines(b_path)):
        if a is None or b is None:
            counts = [sum(1 for _ in read_lines(path)) for path in (a_path, b_path)]
            raise InputError(
                "the two sides have unequal numbers of lines", where=corpus, why=f"{first} has {counts[0]:,}, {second} has {counts[1]:,}"
            )
        number = a[0]
        yield f"{corpus}:{first}:{number}", langs[0], check_text(a[1], a_path, number), langs[1], check_text(b[1], b_path, number)
