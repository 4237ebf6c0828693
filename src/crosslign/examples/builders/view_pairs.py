"""Sentences paired with their augmented copies (SCL's positives, PROTOCOLS A.4.2)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora.columns import SIDES, kind_of
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.shapes import joined, row_lists, shaped


@BUILDERS.register
def build(material: Material) -> pa.Table:
    """Return `pairs` of an original sentence and its copy in a view, in the order of the view's rows.

    Args:
        material: views, and the corpora that they copy. Where `langs` are given, originals of these languages.

    Raises:
        InputError: there is no view, or a row's original is in none of the corpora.
    """
    views = {name: table for name, table in material.corpora.items() if "of" in table.column_names}
    originals = {name: table for name, table in material.corpora.items() if name not in views}
    if not views or not originals:
        raise InputError(
            "view_pairs needs views and the corpora that they copy",
            where=material.name,
            why=f"`from` has {list(material.corpora)}",
            do="Name both in `from`",
        )
    parts = [_side(views, originals, place, material) for place in range(2)]
    return pa.concat_tables([part for part in parts if part is not None])


def _side(views: dict[str, pa.Table], originals: dict[str, pa.Table], place: int, material: Material) -> pa.Table | None:
    """Return the pairs of the first or second sentences of the rows; None where rows have but one."""
    sides = SIDES[kind_of(next(iter(views.values())).column_names)]
    if place >= len(sides):
        return None
    lang, text = sides[place]
    copies = joined(list(views.values()), ("id", "of", lang, text), material.name)
    sources = joined(list(originals.values()), ("id", lang, text), material.name)
    found = pc.index_in(copies["of"], sources["id"])
    if found.null_count:
        lost = copies["of"].filter(pc.is_null(found))[0]
        raise InputError(
            f"the original {str(lost)!r} is in none of the corpora",
            where=material.name,
            do="Name in `from` the corpus that the view copies",
        )
    rows = sources.take(found)
    keep = pc.and_(pc.is_valid(rows[text]), pc.is_valid(copies[text]))
    if material.langs:
        keep = pc.and_(keep, pc.is_in(rows[lang], value_set=pa.array(material.langs, pa.string())))
    rows, copies = rows.filter(keep), copies.filter(keep)
    ids = row_lists(rows["id"], copies["id"])
    return shaped("pairs", rows=ids, a_text=rows[text], a_lang=rows[lang], b_text=copies[text], b_lang=copies[lang])
