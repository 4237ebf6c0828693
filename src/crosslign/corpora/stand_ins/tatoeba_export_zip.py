"""Synthetic data for the exports of Tatoeba's pairs: English, tab, translation, in a zip beside a note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._names import language_in
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import pair_in
from crosslign.languages import normalise

IN_FOLDERS = ("cmn",)
"""Languages whose archive keeps its file in a folder."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `<language>-eng.zip`, its text in `<language>.txt`.

    Raises:
        InputError: the name says no language.
    """
    code = language_in(name, "<language>-eng.zip")
    rows = ["\t".join(pair_in(sentence, "en", normalise(code))) for sentence in sentences]
    folder = f"{code}-eng/" if code in IN_FOLDERS else ""
    return {f"{folder}_about.txt": b"Written from sentences of crosslign.\n", f"{folder}{code}.txt": lines(rows)}
