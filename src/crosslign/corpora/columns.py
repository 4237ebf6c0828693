"""Text and language columns of each shape of table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa

Side = tuple[str, str]
"""Names of a column of languages and of the column of its texts."""

SIDES: Mapping[str, tuple[Side, ...]] = {
    "mono": (("lang", "text"),),
    "bitext": (("a_lang", "a_text"), ("b_lang", "b_text")),
    "multiway": (("lang", "text"),),
    "labelled": (("a_lang", "a_text"), ("b_lang", "b_text")),
}
"""Sides of each kind of corpus; that of an aligned group's other languages is found through the group."""

_ALL: tuple[Side, ...] = (("lang", "text"), ("lang", "pair_text"), ("a_lang", "a_text"), ("b_lang", "b_text"), ("c_lang", "c_text"))


def kind_of(names: Collection[str]) -> str:
    """Return the kind of corpus that has these columns (those of a view are that of its corpus)."""
    if "label" in names:
        return "labelled"
    if "a_text" in names:
        return "bitext"
    return "multiway" if "group" in names else "mono"


def sentences_of(table: pa.Table) -> Iterator[tuple[pa.ChunkedArray, pa.ChunkedArray]]:
    """Yield (languages, texts) of every side that a corpus, a view, or the texts of an evaluation corpus has; texts may be null."""
    for lang, text in _ALL:
        if text in table.column_names:
            yield table[lang], table[text]
