"""Synthetic data for SimCSE's `nli_for_simcse.csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of

HEADER = ("sent0", "sent1", "hard_neg")


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return English triplets in quoted columns; at the end a line that lacks a sentence and one that lacks columns."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(HEADER)
    for triplet in triplets_of(sentences):
        table.writerow([text_in(side, "en") for side in (triplet.premise, triplet.entailed, triplet.contradicting)])
    table.writerow([text_in(sentences[0], "en"), text_in(sentences[0], "en"), ""])
    table.writerow([text_in(sentences[0], "en")])
    return out.getvalue().encode("utf-8")
