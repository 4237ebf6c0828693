"""Stand-ins for the exports of Tatoeba's pairs: English, tab, translation, in a zip beside a note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._names import language_in
from crosslign.corpora.stand_ins._packing import lines, write_archive
from crosslign.corpora.stand_ins._sentences import needed, pair_in
from crosslign.languages import normalise

IN_FOLDERS = ("cmn",)
"""Languages whose archive keeps its file in a folder."""


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `<language>-eng.zip`, its text in `<language>.txt`.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.

    Raises:
        InputError: the name says no language.
    """
    name = str(file["name"])
    needed(sentences, name)
    code = language_in(name, "<language>-eng.zip")
    rows = ["\t".join(pair_in(sentence, "en", normalise(code))) for sentence in sentences]
    folder = f"{code}-eng/" if code in IN_FOLDERS else ""
    write_archive(dest, name, {f"{folder}_about.txt": b"Written from sentences of crosslign.\n", f"{folder}{code}.txt": lines(rows)})
