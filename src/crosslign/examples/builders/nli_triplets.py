"""Premise, entailed and contradicting sentence of one language (docs/papers/msimcse.md, MS-E)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosslign.console import number_of
from crosslign.corpora.dedup import digest
from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import Rows, gathered
from crosslign.examples.sentences import LABELLED, class_numbers
from crosslign.examples.shapes import checked, parts_of, row_lists, shaped
from crosslign.options import Natural

Numbered = NDArray[np.int64]


@BUILDERS.register(version=1, shape="triplets", reads="labelled")
def build(material: Material, *, entailment: Natural = 0, contradiction: Natural = 2) -> Iterator[pa.Table]:
    """Yield one of the `triplets` for each entailed row whose premise has a contradicting row in the same language.

    Where it has several, one of the entailed row's own group is taken, so that triplets which were read as such come back;
    else one is drawn by the seed and the row's id. Entailed rows without any are left out, as in the SimCSE release.

    Args:
        material: labelled corpora, both sides of a row in one language.
        entailment: class number of entailed rows.
        contradiction: class number of contradicting rows.

    Raises:
        InputError: no premise has both.
    """
    corpora = checked(list(material.corpora.values()), LABELLED, material.name)
    entailed, negatives = _matched(corpora, material, entailment, contradiction)
    positives = gathered(parts_of(corpora, ["id", "a_text", "a_lang", "b_text", "b_lang"]), entailed)
    for positive, negative in zip(positives, gathered(parts_of(corpora, ["id", "b_text", "b_lang"]), negatives), strict=True):
        yield shaped(
            "triplets",
            rows=row_lists(positive["id"], negative["id"]),
            a_text=positive["a_text"],
            a_lang=positive["a_lang"],
            b_text=positive["b_text"],
            b_lang=positive["b_lang"],
            c_text=negative["b_text"],
            c_lang=negative["b_lang"],
        )


def _matched(corpora: Sequence[Rows], material: Material, entailment: int, contradiction: int) -> tuple[Numbered, Numbered]:
    """Return the row numbers of entailed rows, and of the contradicting row of each."""
    entailed: list[tuple[int, str, bytes, str | None]] = []
    contradicting: dict[bytes, array[int]] = {}
    own: dict[tuple[bytes, str], int] = {}
    row = -1
    for part in parts_of(corpora, LABELLED):
        labels = class_numbers(part, material.name).tolist()
        columns = (part[column].to_pylist() for column in ("id", "a_lang", "b_lang", "a_text", "group"))
        for row_id, lang, other, premise, group, label in zip(*columns, labels, strict=True):
            row += 1
            if label not in (entailment, contradiction) or lang != other or (material.langs and lang not in material.langs):
                continue
            key = digest(f"{lang}\x1f{premise}")
            if label == entailment:
                entailed.append((row, row_id, key, group))
            else:
                contradicting.setdefault(key, array("q")).append(row)
                if group is not None:
                    own.setdefault((key, group), row)
    pairs = array("q")
    for row, row_id, key, group in entailed:
        if choices := contradicting.get(key):
            drawn = choices[int(generator(material.seed, row_id).random() * len(choices))]
            pairs.extend((row, own.get((key, group or ""), drawn)))
    if not pairs:
        why = f"{number_of(len(entailed), 'entailed row')}, {number_of(len(contradicting), 'premise')} with a contradiction"
        raise InputError("no premise has an entailed and a contradicting sentence", where=material.name, why=why)
    found = np.frombuffer(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
