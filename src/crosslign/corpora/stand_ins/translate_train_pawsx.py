"""Synthetic data for XTREME's translations of the training pairs of PAWS-X."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._sentences import triplets_of
from crosslign.corpora.stand_ins._translate_train import translated


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `en-<language>-translated.tsv` with the classes 1 (paraphrase) and 0."""
    triplets = triplets_of(sentences)
    pairs = ((label, t.premise, other) for t in triplets for label, other in (("1", t.entailed), ("0", t.contradicting)))
    return translated(name, pairs)
