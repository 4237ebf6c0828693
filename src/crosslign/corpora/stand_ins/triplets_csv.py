"""A stand-in for SimCSE's `nli_for_simcse.csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import write_file
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of

HEADER = ("sent0", "sent1", "hard_neg")


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write English triplets in quoted columns; at the end a line that lacks a sentence and one that lacks columns.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(HEADER)
    for triplet in triplets_of(sentences):
        table.writerow([text_in(side, "en") for side in (triplet.premise, triplet.entailed, triplet.contradicting)])
    table.writerow([text_in(sentences[0], "en"), text_in(sentences[0], "en"), ""])
    table.writerow([text_in(sentences[0], "en")])
    write_file(dest, str(file["name"]), out.getvalue().encode("utf-8"))
