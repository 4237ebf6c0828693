"""Translations of each other, from bitexts and from groups of many languages (PROTOCOLS A.2.2, Parallel data)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Literal

import numpy as np
import pyarrow as pa

from crosslign.corpora.columns import kind_of
from crosslign.corpora.sampling import generator, sample
from crosslign.examples import BUILDERS, Material
from crosslign.examples.sentences import SENTENCE, Groups, groups_of
from crosslign.examples.shapes import joined, pick, row_lists, shaped
from crosslign.languages import pair_of

Wanted = frozenset[frozenset[str]]
BITEXT = ("id", "a_lang", "a_text", "b_lang", "b_text")


@BUILDERS.register
def build(
    material: Material,
    *,
    pairs: Sequence[str] = (),
    per_group: int = 1,
    max_per_pair: int | None = None,
    orientation: Literal["random", "as_is"] = "random",
) -> pa.Table:
    """Return `pairs` of translations.

    Of a bitext every row of a wanted language pair is taken. Of a group, for each wanted language pair, `per_group`
    combinations of versions are drawn without replacement, all where there are fewer. Draws hang on the seed and the
    names of groups and rows alone, not on what else is there.

    Args:
        material: bitext and multiway corpora.
        pairs: language pairs such as `en-de`, in either order; all pairs of `langs` where empty.
        per_group: pairs of each group and language pair.
        max_per_pair: bound on the rows of each language pair; a smaller sample is part of a larger one.
        orientation: which side comes first: drawn for each row, or as the row, or the pair in `pairs`, has it.
    """
    order = [pair_of(pair) for pair in pairs]
    sides: list[tuple[pa.Table, pa.Table]] = []
    multiway: dict[str, pa.Table] = {}
    for name, table in material.corpora.items():  # one bitext in memory at a time, but for what is taken of each
        if kind_of(table.column_names) == "multiway":
            multiway[name] = table
        else:
            sides.append(_taken(*_from_bitext(joined([table], BITEXT, material.name), order, material.langs), max_per_pair, material.seed))
    if multiway or not sides:
        sides.append(_from_groups(groups_of(multiway, material.langs, material.name), order, per_group, material.seed))
    left, right = (pa.concat_tables([side[place] for side in sides]) for place in (0, 1))
    left, right = _taken(left, right, max_per_pair, material.seed)
    if orientation == "random":
        left, right = _turned(left, right, material.seed)
    rows = row_lists(left["id"], right["id"])
    return shaped("pairs", rows=rows, a_text=left["text"], a_lang=left["lang"], b_text=right["text"], b_lang=right["lang"])


def _from_bitext(table: pa.Table, order: Sequence[tuple[str, str]], langs: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return (left, right) sentences of the rows of wanted pairs."""
    wanted: Wanted = frozenset(frozenset(pair) for pair in order)
    keep = [
        a is not None and b is not None and (frozenset((a, b)) in wanted if wanted else not langs or {a, b} <= set(langs))
        for a, b in zip(table["a_lang"].to_pylist(), table["b_lang"].to_pylist(), strict=True)
    ]
    rows = table.filter(pa.array(keep, pa.bool_()))
    left, right = (rows.select(["id", f"{side}_lang", f"{side}_text"]).rename_columns(SENTENCE) for side in "ab")
    return left, right


def _from_groups(groups: Groups, order: Sequence[tuple[str, str]], per_group: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """Return (left, right) sentences drawn from groups."""
    drawn = [pair for group in groups.members for pair in _drawn(groups, group, order, per_group, seed)]
    left, right = np.array(drawn, np.int64).reshape(-1, 2).T
    return pick(groups.table, left), pick(groups.table, right)


def _drawn(groups: Groups, group: str, order: Sequence[tuple[str, str]], per_group: int, seed: int) -> Iterator[tuple[int, int]]:
    versions = groups.members[group]
    for a, b in order or combinations(sorted(versions), 2):
        if a in versions and b in versions:
            choices = list(product(versions[a], versions[b]))
            yield from generator(seed, group, a, b).sample(choices, min(per_group, len(choices)))


def _taken(left: pa.Table, right: pa.Table, bound: int | None, seed: int) -> tuple[pa.Table, pa.Table]:
    """Return the rows that a bound on each language pair leaves, in their order.

    What is taken of a whole is taken of each of its parts, too: the bound of each part first, then of all, gives the same.
    """
    if bound is None:
        return left, right
    keys = [f"{a}\x1f{b}" for a, b in zip(left["id"].to_pylist(), right["id"].to_pylist(), strict=True)]
    by_pair: dict[frozenset[str], list[int]] = {}
    for row, langs in enumerate(zip(left["lang"].to_pylist(), right["lang"].to_pylist(), strict=True)):
        by_pair.setdefault(frozenset(langs), []).append(row)
    chosen = sorted(rows[place] for rows in by_pair.values() for place in sample([keys[row] for row in rows], bound, seed))
    return pick(left, chosen), pick(right, chosen)


def _turned(left: pa.Table, right: pa.Table, seed: int) -> tuple[pa.Table, pa.Table]:
    """Swap the sides of rows drawn by their ids."""
    ids = zip(left["id"].to_pylist(), right["id"].to_pylist(), strict=True)
    swap = np.fromiter((generator(seed, "orientation", a, b).random() < 0.5 for a, b in ids), bool, left.num_rows)
    rows, both = np.arange(left.num_rows), pa.concat_tables([left, right])
    return pick(both, np.where(swap, rows + left.num_rows, rows)), pick(both, np.where(swap, rows, rows + left.num_rows))
