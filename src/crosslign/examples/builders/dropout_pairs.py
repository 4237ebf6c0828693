"""Sentences that are paired with themselves: the two dropout masks are the only difference (PROTOCOLS A1.4)."""

from __future__ import annotations

import pyarrow as pa

from crosslign.examples import BUILDERS, Material
from crosslign.examples.sentences import sentences
from crosslign.examples.shapes import joined, row_lists, shaped


@BUILDERS.register
def build(material: Material) -> pa.Table:
    """Return `pairs` without second sides, one a sentence of `langs`, in source order; corpora may be of any kind."""
    rows = joined([sentences(table, material.langs) for table in material.corpora.values()], ("id", "lang", "text"), material.name)
    return shaped("pairs", rows=row_lists(rows["id"]), a_text=rows["text"], a_lang=rows["lang"])
