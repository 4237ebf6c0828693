"""Synthetic data for the tracks of SemEval-2017 task 1: a file of pairs, and one of their grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.evaluations.sts17 import COLUMNS, NAME
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import graded_of, text_in
from crosslign.errors import InputError

PAIRS = 80
"""Pairs of a track at most."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `STS.input.track<n>.<xx>-<yy>.txt` or `STS.gs.track<n>.<xx>-<yy>.txt`.

    Raises:
        InputError: the name is that of neither.
    """
    graded = graded_of(sentences)[:PAIRS]
    match = NAME.fullmatch(name)
    if not match:
        raise InputError(f"{name!r} is not a file of a track", why="expected names like STS.input.track5.en-en.txt")
    first, second = COLUMNS.get(match[4]) or match[4].split("-")
    if match[1] == "gs":
        rows = [f"{pair.grade:.1f}" for pair in graded]
    else:
        rows = [f"{text_in(pair.first, first)}\t{text_in(pair.second, second)}" for pair in graded]
    return lines(rows)
