"""Synthetic data for the extended STS 2017: graded pairs of five pairs of languages in a zip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import graded_of, text_in

PAIRS = (("en", "de"), ("en", "tr"), ("fr", "en"), ("it", "en"), ("nl", "en"))
COUNT = 80
"""Pairs of a file at most."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `STS2017-extended/STS.<xx>-<yy>.txt`: first, second, grade."""
    graded = graded_of(sentences)[:COUNT]
    return {
        f"STS2017-extended/STS.{first}-{second}.txt": lines(
            [f"{text_in(pair.first, first)}\t{text_in(pair.second, second)}\t{pair.grade:.1f}" for pair in graded]
        )
        for first, second in PAIRS
    }
