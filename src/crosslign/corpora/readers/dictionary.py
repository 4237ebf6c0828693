"""Two-column dictionaries as MUSE has them: a word, a space or tab, its translation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._left_out import BROKEN, leave_out
from crosslign.corpora.readers._lines import left_out, read_lines
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError

PAIR_NAME = re.compile(r"(?:^|[^a-z])([a-z]{2,3})-([a-z]{2,3})\.")


@READERS.register(version=1, gives="bitext", languages=2)
def read(files: Mapping[str, Path], corpus: str, langs: Sequence[str], *, skip_broken: bool = False) -> Iterator[pa.Table]:
    """Yield `bitext` rows, one word a side; a word with several translations has several rows.

    Args:
        files: path by catalog name; `en-de.txt` and `muse_en-de.5000.txt` are English to German, a name without a pair takes `langs`.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`.
        langs: the two languages to read; files of others are passed over.
        skip_broken: leave out lines that do not have exactly two words, have a NUL or are not UTF-8, instead of refusing them.

    Raises:
        InputError: a line that has not exactly two words (`file:line`).
    """
    columns = ("id", "a_lang", "a_text", "b_lang", "b_text")
    yield from tables(_rows(files, corpus, langs, skip_broken), "bitext", columns)


def _pair_of(name: str, langs: Sequence[str]) -> tuple[str, str]:
    found = PAIR_NAME.search(name.rsplit("/", 1)[-1])
    return (found[1], found[2]) if found else (langs[0], langs[1])


def _rows(files: Mapping[str, Path], corpus: str, langs: Sequence[str], skip_broken: bool) -> Iterator[tuple[str, ...]]:
    for name, path in files.items():
        a_lang, b_lang = _pair_of(name, langs)
        if a_lang not in langs or b_lang not in langs:
            continue
        for number, text in read_lines(path, broken=left_out if skip_broken else None):
            words = [word for word in re.split(r"[ \t]+", text) if word]
            if len(words) != 2:
                if skip_broken:
                    leave_out(BROKEN)
                    continue
                raise InputError("a line must have two words", where=f"{path}:{number}", why=f"found {len(words)}")
            yield f"{corpus}:{name}:{number}", a_lang, words[0], b_lang, words[1]
