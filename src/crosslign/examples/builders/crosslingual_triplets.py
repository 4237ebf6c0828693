"""mSimCSE's cross-lingual triplets from aligned NLI rows (docs/papers/msimcse.md)."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.sentences import Aligned, aligned_pairs
from crosslign.examples.shapes import row_lists, shaped
from crosslign.options import Natural


@BUILDERS.register(version=1, shape="triplets", reads="labelled")
def build(
    material: Material,
    *,
    anchor_language: Literal["enumerate", "random"] = "enumerate",
    entailment: Natural = 0,
    contradiction: Natural = 2,
    legacy_strip_commas: bool = False,
) -> Iterator[pa.Table]:
    """Yield n of the `triplets` for each entailed row, n the number of languages that have it.

    The anchor is the premise; the positive is the row's hypothesis in a language drawn uniformly; the hard negative is
    the contradicting hypothesis of the same premise (equal English text; of several the last in file order) in another
    such draw. A premise without any gets that of a premise drawn uniformly. Both draws are with replacement and may give
    the anchor's language, as in the released code.

    Args:
        material: labelled corpora whose aligned rows share their group.
        anchor_language: `enumerate` gives each language one anchor (the released code), `random` draws each anchor's
            language too (the paper); the number of triplets is the same.
        entailment: class number of entailed rows.
        contradiction: class number of contradicting rows.
        legacy_strip_commas: replace commas by spaces and delete double quotes, as the released code does.

    Raises:
        InputError: there is no entailed or no contradicting row.
    """
    pairs = aligned_pairs(list(material.corpora.values()), material.langs, material.name)
    premises = pairs.premises()
    last = {premises[pair]: pair for pair in np.flatnonzero(pairs.labels == contradiction).tolist()}
    entailed = np.flatnonzero(pairs.labels == entailment)
    if not last or not len(entailed):
        why = f"{number_of(len(entailed), 'entailed pair')}, {number_of(len(last), 'premise')} with a contradiction"
        raise InputError("cross-lingual triplets need entailed and contradicting rows", where=material.name, why=why)
    draw = random.Random(material.seed)
    elsewhere = list(last.values())
    drawn = array("q")
    for pair in entailed.tolist():
        for triplet in _triplets(pairs, pair, last.get(premises[pair]), elsewhere, anchor_language == "random", draw):
            drawn.extend(triplet)
    orders = np.frombuffer(drawn, np.int64).reshape(-1, 3).T
    sides = [pairs.gathered(["id", f"{side}_lang", f"{side}_text"], order) for side, order in zip("abb", orders, strict=True)]
    for anchor, positive, negative in zip(*sides, strict=True):
        texts = {"a_text": anchor["a_text"], "b_text": positive["b_text"], "c_text": negative["b_text"]}
        if legacy_strip_commas:
            texts = {name: pc.replace_substring(pc.replace_substring(text, ",", " "), '"', "") for name, text in texts.items()}
        rows = row_lists(anchor["id"], positive["id"], negative["id"])
        langs = {"a_lang": anchor["a_lang"], "b_lang": positive["b_lang"], "c_lang": negative["b_lang"]}
        yield shaped("triplets", rows=rows, **texts, **langs)


def _triplets(
    pairs: Aligned, pair: int, own: int | None, elsewhere: list[int], random_anchor: bool, draw: random.Random
) -> Iterator[tuple[int, int, int]]:
    """Yield (anchor, positive, hard negative) row numbers, one triplet for each language of an entailed pair."""
    there = [row for row in pairs.rows[pair].tolist() if row >= 0]
    contradiction = own if own is not None else draw.choice(elsewhere)
    against = [row for row in pairs.rows[contradiction].tolist() if row >= 0]
    for row in there:
        yield draw.choice(there) if random_anchor else row, draw.choice(there), draw.choice(against)
