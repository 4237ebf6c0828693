"""Sentences that are paired with themselves: the two dropout masks are the only difference (docs/papers/msimcse.md)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from crosslign.examples import BUILDERS, Material
from crosslign.examples.sentences import sentences
from crosslign.examples.shapes import row_lists, shaped


@BUILDERS.register(version=1, shape="pairs")
def build(material: Material) -> Iterator[pa.Table]:
    """Yield `pairs` without second sides, one a sentence of `langs`, in source order; corpora may be of any kind."""
    for rows in sentences(list(material.corpora.values()), material.langs, material.name):
        yield shaped("pairs", rows=row_lists(rows["id"]), a_text=rows["text"], a_lang=rows["lang"])
