"""Synthetic data for CWMT's parallel corpora: a zip of two text files, aligned line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import pair_in

SIDES = {"neu2017": ("NEU_en.txt", "NEU_cn.txt")}
"""Names of the two sides where they are not the corpus's own with `_en` and `_ch`."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return the members of `<corpus>.zip`, in a folder of the corpus's name."""
    corpus = name.removesuffix(".zip")
    english, chinese = SIDES.get(corpus, (f"{corpus}_en.txt", f"{corpus}_ch.txt"))
    pairs = [pair_in(sentence, "en", "zh") for sentence in sentences]
    return {f"{corpus}/{english}": lines([a for a, _ in pairs]), f"{corpus}/{chinese}": lines([b for _, b in pairs])}
