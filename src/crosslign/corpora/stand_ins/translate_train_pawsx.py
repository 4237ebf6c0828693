"""Stand-ins for XTREME's translations of the training pairs of PAWS-X."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._sentences import triplets_of
from crosslign.corpora.stand_ins._translate_train import write_translated


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `en-<language>-translated.tsv` with the classes 1 (paraphrase) and 0.

    Args:
        dest: final path.
        file: the catalog's file; its name says the language.
        sentences: aligned sentences by language.
    """
    triplets = triplets_of(sentences)
    pairs = ((label, t.premise, other) for t in triplets for label, other in (("1", t.entailed), ("0", t.contradicting)))
    write_translated(dest, str(file["name"]), pairs)
