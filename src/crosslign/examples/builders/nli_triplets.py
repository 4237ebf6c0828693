"""Premise, entailed and contradicting sentence of one language (PROTOCOLS A.2.2, MS-E)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.sentences import LABELLED, class_numbers
from crosslign.examples.shapes import joined, pick, row_lists, shaped


@BUILDERS.register
def build(material: Material, *, entailment: int = 0, contradiction: int = 2) -> pa.Table:
    """Return one of the `triplets` for each entailed row whose premise has a contradicting row in the same language.

    Where it has several, one of the entailed row's own group is taken, so that triplets which were read as such come back;
    else one is drawn by the seed and the row's id. Entailed rows without any are left out, as in the SimCSE release.

    Args:
        material: labelled corpora, both sides of a row in one language.
        entailment: class number of entailed rows.
        contradiction: class number of contradicting rows.

    Raises:
        InputError: no premise has both.
    """
    table = joined(list(material.corpora.values()), LABELLED, material.name)
    labels = class_numbers(table, material.name).tolist()
    columns = (table[column].to_pylist() for column in ("id", "a_lang", "b_lang", "a_text", "group"))
    entailed: list[tuple[int, str, tuple[str, str], str | None]] = []
    contradicting: dict[tuple[str, str], list[int]] = {}
    own: dict[tuple[str, str, str], int] = {}
    for row, (row_id, lang, other, premise, group, label) in enumerate(zip(*columns, labels, strict=True)):
        if lang == other and (not material.langs or lang in material.langs):
            if label == entailment:
                entailed.append((row, row_id, (lang, premise), group))
            elif label == contradiction:
                contradicting.setdefault((lang, premise), []).append(row)
                if group is not None:
                    own.setdefault((lang, premise, group), row)
    triplets = []
    for row, row_id, key, group in entailed:
        if choices := contradicting.get(key):
            drawn = choices[int(generator(material.seed, row_id).random() * len(choices))]
            triplets.append((row, own.get((*key, group or ""), drawn)))
    if not triplets:
        why = f"{len(entailed)} entailed rows, {len(contradicting)} premises with a contradiction"
        raise InputError("no premise has an entailed and a contradicting sentence", where=material.name, why=why)
    positive, negative = (pick(table, rows) for rows in np.array(triplets, np.int64).T)
    return shaped(
        "triplets",
        rows=row_lists(positive["id"], negative["id"]),
        a_text=positive["a_text"],
        a_lang=positive["a_lang"],
        b_text=positive["b_text"],
        b_lang=positive["b_lang"],
        c_text=negative["b_text"],
        c_lang=negative["b_lang"],
    )
