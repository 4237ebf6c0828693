"""Premises in several languages with a contradicting sentence: MPCL's groups with hard negatives (PROTOCOLS A5.5, A5.7)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.sentences import Aligned, aligned_pairs
from crosslign.examples.shapes import shaped


@BUILDERS.register
def build(
    material: Material,
    *,
    size: int | None = None,
    per: Literal["row", "premise"] = "row",
    hard_negatives: bool = True,
    contradiction: int = 2,
) -> pa.Table:
    """Return `groups` of a premise in `size` languages, drawn where it has more.

    The hard negative is the contradicting sentence of the same premise (of several, one is drawn) in a drawn language; a
    premise without any has none. Draws hang on the seed and the premise's row alone.

    Args:
        material: labelled corpora whose aligned rows share their group.
        size: members of a group, at least 2; the number of `langs` where it is not given.
        per: one group for each aligned row (a premise comes as often as it has rows: the reading of the paper's 400 k), or
            one for each distinct premise.
        hard_negatives: add the contradicting sentences.
        contradiction: class number of contradicting rows.

    Raises:
        InputError: no size can be known, or no premise has so many languages.
    """
    size = size or len(material.langs)
    if size < 2:
        raise InputError("a group has at least two sentences", where=material.name, do="Give `size` or `langs`")
    pairs = aligned_pairs(material.corpora, material.langs, material.name)
    against: dict[str, list[int]] = {}
    for pair in np.flatnonzero(pairs.labels == contradiction).tolist() if hard_negatives else []:
        against.setdefault(pairs.premises[pair], []).append(pair)
    first: dict[str, int] = {}
    for pair, premise in enumerate(pairs.premises):
        first.setdefault(premise, pair)
    chosen = range(len(pairs.rows)) if per == "row" else first.values()
    drawn = [_drawn(pairs, pair, against.get(pairs.premises[pair], []), size, material.seed) for pair in chosen]
    made = [group for group in drawn if group]
    if not made:
        raise InputError(
            f"no premise is in {size} languages", where=material.name, do="Lower `size`, or name languages that the corpus has"
        )
    return _table(pairs.table, made)


def _drawn(pairs: Aligned, pair: int, against: list[int], size: int, seed: int) -> tuple[list[int], int] | None:
    """Return the rows of a group's members, and that of its hard negative or -1; None where it has too few languages."""
    there = [row for row in pairs.rows[pair].tolist() if row >= 0]
    if len(there) < size:
        return None
    draw = generator(seed, pairs.table["id"][there[0]].as_py())
    members = sorted(draw.sample(there, size), key=there.index)
    hard = [row for row in pairs.rows[draw.choice(against)].tolist() if row >= 0] if against else []
    return members, draw.choice(hard) if hard else -1


def _table(rows: pa.Table, groups: list[tuple[list[int], int]]) -> pa.Table:
    column = {name: rows[name].to_pylist() for name in ("id", "a_text", "a_lang", "b_text", "b_lang")}
    lists = pa.list_(pa.string())
    return shaped(
        "groups",
        rows=pa.array([[column["id"][row] for row in [*members, *([hard] if hard >= 0 else [])]] for members, hard in groups], lists),
        texts=pa.array([[column["a_text"][row] for row in members] for members, _ in groups], lists),
        langs=pa.array([[column["a_lang"][row] for row in members] for members, _ in groups], lists),
        c_text=pa.array([column["b_text"][hard] if hard >= 0 else None for _, hard in groups], pa.string()),
        c_lang=pa.array([column["b_lang"][hard] if hard >= 0 else None for _, hard in groups], pa.string()),
    )
