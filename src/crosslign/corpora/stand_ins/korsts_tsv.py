"""Synthetic data for KorSTS: graded pairs of Korean sentences in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import graded_of, text_in

HEADER = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2"


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `sts-dev.tsv` or `sts-test.tsv`: every other pair."""
    rows = [
        f"main-written\twritten\t2026\t{number:04d}\t{pair.grade:.3f}\t{text_in(pair.first, 'ko')}\t{text_in(pair.second, 'ko')}"
        for number, pair in enumerate(graded_of(sentences)[name.startswith("sts-test") :: 2])
    ]
    return lines([HEADER, *rows])
