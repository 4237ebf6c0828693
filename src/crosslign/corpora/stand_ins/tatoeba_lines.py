"""Synthetic data for Tatoeba v1 of LASER: one side of one pair of languages, a sentence a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import pair_in

PIVOT = "eng"
LINES = 80
"""Lines of a file at most: the smallest languages of the real set have a hundred."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `tatoeba.<xxx>-eng.<xxx>` or `tatoeba.<xxx>-eng.eng`; the two are aligned by line."""
    _, pair, side = name.split(".")
    lang = pair.removesuffix(f"-{PIVOT}")
    texts = (pair_in(sentence, PIVOT, lang) for sentence in sentences[:LINES])
    return lines([text[side != PIVOT] for text in texts])
