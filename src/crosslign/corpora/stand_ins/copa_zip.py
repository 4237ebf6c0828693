"""Synthetic data for COPA of SuperGLUE: training and validation questions in a zip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._choices import copa_lines
from crosslign.corpora.stand_ins._sentences import triplets_of

SPLITS = ("train", "val")


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `COPA/train.jsonl` and `COPA/val.jsonl`: every other triplet."""
    triplets = triplets_of(sentences)
    return {f"COPA/{split}.jsonl": copa_lines(triplets[at :: len(SPLITS)], "en") for at, split in enumerate(SPLITS)}
