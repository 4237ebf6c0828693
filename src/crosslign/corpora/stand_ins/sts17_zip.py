"""A stand-in for the extended STS 2017: graded pairs of five pairs of languages in a zip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines, write_archive
from crosslign.corpora.stand_ins._sentences import graded_of, text_in

PAIRS = (("en", "de"), ("en", "tr"), ("fr", "en"), ("it", "en"), ("nl", "en"))
COUNT = 80
"""Pairs of a file at most."""


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `STS2017-extended/STS.<xx>-<yy>.txt`: first, second, grade.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    graded = graded_of(sentences)[:COUNT]
    members = {
        f"STS2017-extended/STS.{first}-{second}.txt": lines(
            [f"{text_in(pair.first, first)}\t{text_in(pair.second, second)}\t{pair.grade:.1f}" for pair in graded]
        )
        for first, second in PAIRS
    }
    write_archive(dest, str(file["name"]), members)
