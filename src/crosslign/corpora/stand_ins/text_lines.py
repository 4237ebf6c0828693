"""Synthetic data for monolingual text, a sentence a line: SimCSE's Wikipedia sentences, CC-100."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in

LANGUAGE = re.compile(r"(?:^|[_.-])([a-z]{2,3})(?:[-_][A-Za-z]+)?\.txt(?:\.\w+)?$")
DOCUMENT = 25
"""Lines of a document; an empty line follows, as in CC-100, where the file is one of a language."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return the file; its name says the language (`de.txt.xz`), else it is English."""
    found = LANGUAGE.search(name)
    rows = [text_in(sentence, found[1] if found else "en") for sentence in sentences]
    if found and name.startswith(found[1]):
        rows = [text for at in range(0, len(rows), DOCUMENT) for text in (*rows[at : at + DOCUMENT], "")]
    return lines(rows)
