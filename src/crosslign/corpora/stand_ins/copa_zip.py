"""A stand-in for COPA of SuperGLUE: training and validation questions in a zip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._choices import copa_lines
from crosslign.corpora.stand_ins._packing import write_archive
from crosslign.corpora.stand_ins._sentences import triplets_of

SPLITS = ("train", "val")


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `COPA/train.jsonl` and `COPA/val.jsonl`: every other triplet.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    triplets = triplets_of(sentences)
    members = {f"COPA/{split}.jsonl": copa_lines(triplets[at :: len(SPLITS)], "en") for at, split in enumerate(SPLITS)}
    write_archive(dest, str(file["name"]), members)
