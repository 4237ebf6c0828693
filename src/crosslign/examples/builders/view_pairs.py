"""Sentences paired with their augmented copies (SCL's positives, docs/papers/scl.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora.columns import SIDES, kind_of
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import cut, gathered
from crosslign.examples.sentences import SENTENCE, originals_of, usable
from crosslign.examples.shapes import checked, parts_of, row_lists, shaped


@BUILDERS.register(version=1, shape="pairs")
def build(material: Material) -> Iterator[pa.Table]:
    """Yield `pairs` of an original sentence and its copy in a view, in the order of the view's rows.

    Args:
        material: views, and the corpora that they copy. Where `langs` are given, originals of these languages.

    Raises:
        InputError: there is no view, or a row's original is in none of the corpora.
    """
    views = [rows for rows in material.corpora.values() if "of" in rows.columns]
    originals = [rows for rows in material.corpora.values() if "of" not in rows.columns]
    if not views or not originals:
        raise InputError(
            "view_pairs needs views and their original corpora",
            where=material.name,
            why=f"`from` has {list(material.corpora)}",
            do="Name both in `from`",
        )
    sides = SIDES[kind_of(views[0].columns)]
    for side in sides:
        checked(views, ("id", "of", *side), material.name)
        checked(originals, ("id", *side), material.name)
    found = originals_of(views, originals, material.name)
    for lang, text in sides:
        copies = parts_of(views, ["id", lang, text])
        sources = gathered(parts_of(originals, ["id", lang, text]), found)
        sizes = (part.num_rows for part in parts_of(views, ["id"]))
        for source, copy in zip(cut(sources, sizes), copies, strict=True):
            yield _pairs(source.rename_columns(SENTENCE), copy.rename_columns(SENTENCE), material.langs)


def _pairs(source: pa.Table, copy: pa.Table, langs: Sequence[str]) -> pa.Table:
    keep = pc.and_(usable(source["text"], source["lang"], langs), pc.is_valid(copy["text"]))
    source, copy = source.filter(keep), copy.filter(keep)
    ids = row_lists(source["id"], copy["id"])
    return shaped("pairs", rows=ids, a_text=source["text"], a_lang=source["lang"], b_text=copy["text"], b_lang=copy["lang"])
