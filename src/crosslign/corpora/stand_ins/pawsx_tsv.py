"""Synthetic data for the development parts of PAWS-X as XTREME writes them: two sentences and 0 or 1, one file a language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._names import language_in
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `dev-<language>.tsv`, without header.

    Raises:
        InputError: the name says no language.
    """
    lang = language_in(name, "dev-<language>.tsv")
    rows = []
    for triplet in triplets_of(sentences)[::2]:
        for label, other in (("1", triplet.entailed), ("0", triplet.contradicting)):
            rows.append("\t".join((text_in(triplet.premise, lang), text_in(other, lang), label)))
    return lines(rows)
