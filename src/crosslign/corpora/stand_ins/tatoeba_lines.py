"""Stand-ins for Tatoeba v1 of LASER: one side of one pair of languages, a sentence a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines, write_file
from crosslign.corpora.stand_ins._sentences import needed, pair_in

PIVOT = "eng"
LINES = 80
"""Lines of a file at most: the smallest languages of the real set have a hundred."""


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `tatoeba.<xxx>-eng.<xxx>` or `tatoeba.<xxx>-eng.eng`; the two are aligned by line.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    name = str(file["name"])
    needed(sentences, name)
    _, pair, side = name.split(".")
    lang = pair.removesuffix(f"-{PIVOT}")
    texts = (pair_in(sentence, PIVOT, lang) for sentence in sentences[:LINES])
    write_file(dest, name, lines([text[side != PIVOT] for text in texts]))
