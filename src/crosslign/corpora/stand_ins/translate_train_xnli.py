"""Synthetic data for XTREME's translations of XNLI's training pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._sentences import triplets_of
from crosslign.corpora.stand_ins._translate_train import translated
from crosslign.corpora.stand_ins.xnli_mt_zip import LABELS


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `en-<language>-translated.tsv` with the three classes of XNLI."""
    triplets = triplets_of(sentences)
    pairs = (pair for at, triplet in enumerate(triplets) for pair in triplet.pairs(triplets[(at + 1) % len(triplets)]))
    return translated(name, ((LABELS.get(label, label), first, second) for label, first, second in pairs))
