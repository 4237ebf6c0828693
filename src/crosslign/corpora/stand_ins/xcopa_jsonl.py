"""Stand-ins for XCOPA: questions with two answers of one language, as JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._choices import copa_lines
from crosslign.corpora.stand_ins._packing import write_file
from crosslign.corpora.stand_ins._sentences import triplets_of

QUESTIONS = 80
"""Questions of a file at most."""


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `val.<language>.jsonl` or `test.<language>.jsonl`: every other triplet.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    name = str(file["name"])
    split, lang, _ = name.split(".")
    write_file(dest, name, copa_lines(triplets_of(sentences)[split == "test" :: 2][:QUESTIONS], lang))
