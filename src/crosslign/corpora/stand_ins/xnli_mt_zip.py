"""Synthetic data for XNLI-MT 1.0: MultiNLI's training pairs in fifteen languages, aligned line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of

LANGS = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")
HEADER = "premise\thypo\tlabel"
LABELS = {"contradiction": "contradictory"}
"""How these files call a class, where that is not its usual name."""
BROKEN = ("no hypothesis", "premise\thypothesis\tno class")
"""The last lines of each file: among 392,702 lines of machine translation some may be damaged."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `XNLI-MT-1.0/multinli/multinli.train.<language>.tsv` in a zip."""
    triplets = triplets_of(sentences)
    members = {}
    for lang in LANGS:
        rows = [HEADER]
        for at, triplet in enumerate(triplets):
            for label, premise, hypothesis in triplet.pairs(triplets[(at + 1) % len(triplets)]):
                rows.append(f"{text_in(premise, lang)}\t{text_in(hypothesis, lang)}\t{LABELS.get(label, label)}")
        members[f"XNLI-MT-1.0/multinli/multinli.train.{lang}.tsv"] = lines([*rows, *BROKEN])
    return members
