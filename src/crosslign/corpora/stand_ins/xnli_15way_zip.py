"""A stand-in for XNLI's 15-way file: one sentence in fifteen languages a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines, write_archive
from crosslign.corpora.stand_ins._sentences import needed, phrase_in
from crosslign.corpora.stand_ins.xnli_mt_zip import LANGS


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `XNLI-15way/xnli.15way.orig.tsv` in a zip: phrases, because all its languages say the same.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    needed(sentences, str(file["name"]))
    rows = ["\t".join(LANGS), *("\t".join(phrase_in(sentence, lang) for lang in LANGS) for sentence in sentences)]
    write_archive(dest, str(file["name"]), {"XNLI-15way/xnli.15way.orig.tsv": lines(rows)})
