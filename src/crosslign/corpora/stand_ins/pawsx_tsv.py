"""Stand-ins for the development parts of PAWS-X as XTREME writes them: two sentences and 0 or 1, one file a language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._names import language_in
from crosslign.corpora.stand_ins._packing import lines, write_file
from crosslign.corpora.stand_ins._sentences import needed, text_in, triplets_of


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `dev-<language>.tsv`, without header.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.

    Raises:
        InputError: the name says no language.
    """
    name = str(file["name"])
    needed(sentences, name)
    lang = language_in(name, "dev-<language>.tsv")
    rows = []
    for triplet in triplets_of(sentences)[::2]:
        for label, other in (("1", triplet.entailed), ("0", triplet.contradicting)):
            rows.append("\t".join((text_in(triplet.premise, lang), text_in(other, lang), label)))
    write_file(dest, name, lines(rows))
