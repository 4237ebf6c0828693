"""Pairs with the vector that a teacher gives for one side: distillation into other languages (Reimers and Gurevych 2020)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.shapes import shape_of, shaped
from crosslign.options import Lang

AT_ONCE = 1_024
"""Rows whose vectors are computed together."""
COLUMNS = ("rows", "a_text", "a_lang", "b_text", "b_lang")


@BUILDERS.register(version=1, shape="labelled")
def build(material: Material, *, pivot: Lang = "en") -> Iterator[pa.Table]:
    """Yield `labelled` examples: the pairs in `of`, each with the teacher's vector of its sentence in `pivot` as label.

    With the mean squared error both sides learn this vector, so that a translation comes to lie where the teacher puts the sentence.
    Vectors are those of the teacher's own readout, not scaled to unit length. Pairs without a sentence in `pivot` are left out.

    Args:
        material: training sets of pairs in `of`, and the teacher.
        pivot: language that the teacher reads.

    Raises:
        InputError: no teacher is named, or a training set has another shape.
    """
    if material.teach is None:
        raise InputError("no teacher", where=material.name, do="Name an encoder, for example `teacher: minilm_l6`")
    found = {name: shape_of(rows.columns) for name, rows in material.others.items()}
    if set(found.values()) != {"pairs"}:
        raise InputError(
            "taught_pairs needs training sets of pairs", where=material.name, why=f"`of` has {found}", do="Name a training set of pairs"
        )
    for rows in material.others.values():
        for part in rows.parts(COLUMNS):
            for start in range(0, part.num_rows, AT_ONCE):
                first, second = (pc.fill_null(pc.equal(part[f"{side}_lang"], pivot), False) for side in "ab")
                read = pc.or_(first, second).slice(start, AT_ONCE)
                rows_here = part.slice(start, AT_ONCE).filter(read)
                taught = pc.if_else(first.slice(start, AT_ONCE).filter(read), rows_here["a_text"], rows_here["b_text"])
                yield _labelled(rows_here, material.teach(taught.to_pylist(), [pivot] * rows_here.num_rows))


def _labelled(rows: pa.Table, vectors: list[list[float]]) -> pa.Table:
    label = pa.array(vectors, pa.list_(pa.float32()))
    return shaped("labelled_examples", label=label, **{name: rows[name] for name in COLUMNS})
