"""Stand-ins for XTREME's translations of XNLI's training pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._sentences import triplets_of
from crosslign.corpora.stand_ins._translate_train import write_translated
from crosslign.corpora.stand_ins.xnli_mt_zip import LABELS


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `en-<language>-translated.tsv` with the three classes of XNLI.

    Args:
        dest: final path.
        file: the catalog's file; its name says the language.
        sentences: aligned sentences by language.
    """
    triplets = triplets_of(sentences)
    pairs = (pair for at, triplet in enumerate(triplets) for pair in triplet.pairs(triplets[(at + 1) % len(triplets)]))
    write_translated(dest, str(file["name"]), ((LABELS.get(label, label), first, second) for label, first, second in pairs))
