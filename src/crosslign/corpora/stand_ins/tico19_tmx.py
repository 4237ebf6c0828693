"""Stand-ins for TICO-19: translation memories with English, one a language, whose units carry the same ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._names import language_in
from crosslign.corpora.stand_ins._packing import lines, write_archive
from crosslign.corpora.stand_ins._sentences import needed, pair_in
from crosslign.languages import normalise

HEAD = """<?xml version="1.0" encoding="UTF-8" ?>
<tmx version="1.4">
<header creationtool="crosslign" segtype="sentence" srclang="en" />
<body>
"""
UNIT = '<tu tuid="StandIn:{number}"><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="{code}"><seg>{b}</seg></tuv></tu>'


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `all.en-<language>.tmx.zip`.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.

    Raises:
        InputError: the name says no language.
    """
    name = str(file["name"])
    needed(sentences, name)
    code = language_in(name, "all.en-<language>.tmx.zip")
    pairs = (pair_in(sentence, "en", normalise(code)) for sentence in sentences)
    units = [UNIT.format(number=number, code=code, a=escape(a), b=escape(b)) for number, (a, b) in enumerate(pairs, start=1)]
    write_archive(dest, name, {name.removesuffix(".zip"): HEAD.encode() + lines(units) + b"</body>\n</tmx>\n"})
