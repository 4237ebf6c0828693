"""Synthetic data for AmericasNLI: pairs of one language in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of

HEADER = "language\tpremise\thypothesis\tlabel"
TRIPLETS = 40
"""Premises of a file at most; each has three hypotheses."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `dev_<language>.tsv` or `test_<language>.tsv`: every other triplet, one pair of each class."""
    split, lang = name.removesuffix(".tsv").split("_")
    triplets = triplets_of(sentences)[split == "test" :: 2][:TRIPLETS]
    rows = [
        f"{lang}\t{text_in(premise, lang)}\t{text_in(hypothesis, lang)}\t{label}"
        for at, triplet in enumerate(triplets)
        for label, premise, hypothesis in triplet.pairs(triplets[(at + 1) % len(triplets)])
    ]
    return lines([HEADER, *rows])
