"""Synthetic data for bitext in two columns: News Commentary of statmt.org."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import pair_in
from crosslign.errors import InputError

NAME = re.compile(r".*?([a-z]{2,3})-([a-z]{2,3})\.tsv(?:\.\w+)?")
BREAK = 40
"""Lines of an article; a line without text follows, as in the real file."""
BROKEN = "no second column"
"""The last line: text of the web may lack its tab."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `…<a>-<b>.tsv`, packed as its name says.

    Raises:
        InputError: the name says no pair of languages.
    """
    found = NAME.fullmatch(name)
    if not found:
        raise InputError(f"{name!r} names no languages", why="expected …<a>-<b>.tsv")
    rows = ["\t".join(pair_in(sentence, found[1], found[2])) for sentence in sentences]
    return lines([row for at in range(0, len(rows), BREAK) for row in (*rows[at : at + BREAK], "\t")] + [BROKEN])
