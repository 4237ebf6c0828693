"""Synthetic data for TICO-19: translation memories with English, one a language, whose units carry the same ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._names import language_in
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import pair_in
from crosslign.languages import normalise

HEAD = """<?xml version="1.0" encoding="UTF-8" ?>
<tmx version="1.4">
<header creationtool="crosslign" segtype="sentence" srclang="en" />
<body>
"""
UNIT = '<tu tuid="StandIn:{number}"><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="{code}"><seg>{b}</seg></tuv></tu>'


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `all.en-<language>.tmx.zip`.

    Raises:
        InputError: the name says no language.
    """
    code = language_in(name, "all.en-<language>.tmx.zip")
    pairs = (pair_in(sentence, "en", normalise(code)) for sentence in sentences)
    units = [UNIT.format(number=number, code=code, a=escape(a), b=escape(b)) for number, (a, b) in enumerate(pairs, start=1)]
    return {name.removesuffix(".zip"): HEAD.encode() + lines(units) + b"</body>\n</tmx>\n"}
