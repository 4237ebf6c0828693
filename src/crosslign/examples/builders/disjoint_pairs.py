"""Groups cut into disjoint pairs: MPCL's comparator with one positive (docs/papers/mpcl.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.shapes import shape_of, shaped


@BUILDERS.register(version=1, shape="pairs")
def build(material: Material) -> Iterator[pa.Table]:
    """Yield the `pairs` that the members of each group make when they are drawn two by two.

    Each member stands in one pair, of a group of odd size one stays alone; orders are drawn by the seed and the group's id. So
    the pairs of an epoch show the very sentences that the groups of an epoch show. Hard negatives are left out.

    Args:
        material: training sets of groups in `of`.

    Raises:
        InputError: there is none, or one has another shape.
    """
    found = {name: shape_of(rows.columns) for name, rows in material.others.items()}
    if set(found.values()) != {"groups"}:
        raise InputError(
            "disjoint_pairs needs training sets of groups", where=material.name, why=f"`of` has {found}", do="Name a training set of groups"
        )
    for part in (part for rows in material.others.values() for part in rows.parts(["id", "rows", "texts", "langs"])):
        yield _table([pair for row in part.to_pylist() for pair in _cut(row, material.seed)])


def _table(pairs: Sequence[tuple[list[str], str, str, str, str]]) -> pa.Table:
    columns = list(zip(*pairs, strict=True)) or [()] * 5
    names = ("rows", "a_text", "a_lang", "b_text", "b_lang")
    kinds = (pa.list_(pa.string()), *[pa.string()] * 4)
    return shaped("pairs", **{name: pa.array(column, kind) for name, column, kind in zip(names, columns, kinds, strict=True)})


def _cut(row: dict[str, Any], seed: int) -> list[tuple[list[str], str, str, str, str]]:
    order = list(range(len(row["texts"])))
    generator(seed, row["id"]).shuffle(order)
    ids, texts, langs = row["rows"], row["texts"], row["langs"]
    return [([ids[a], ids[b]], texts[a], langs[a], texts[b], langs[b]) for a, b in zip(order[::2], order[1::2], strict=False)]
