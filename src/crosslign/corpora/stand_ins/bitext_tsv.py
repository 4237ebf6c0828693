"""Stand-ins for bitext in two columns: News Commentary of statmt.org."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines, write_file
from crosslign.corpora.stand_ins._sentences import needed, pair_in
from crosslign.errors import InputError

NAME = re.compile(r".*?([a-z]{2,3})-([a-z]{2,3})\.tsv(?:\.\w+)?")
BREAK = 40
"""Lines of an article; a line without text follows, as in the real file."""
BROKEN = "no second column"
"""The last line: text of the web may lack its tab."""


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `…<a>-<b>.tsv`, packed as its name says.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.

    Raises:
        InputError: the name says no pair of languages.
    """
    name = str(file["name"])
    needed(sentences, name)
    found = NAME.fullmatch(name)
    if not found:
        raise InputError(f"{name!r} says no languages", why="expected …<a>-<b>.tsv")
    rows = ["\t".join(pair_in(sentence, found[1], found[2])) for sentence in sentences]
    write_file(dest, name, lines([row for at in range(0, len(rows), BREAK) for row in (*rows[at : at + BREAK], "\t")] + [BROKEN]))
