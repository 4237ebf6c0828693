"""Translations of each other, from bitexts and from groups of many languages (PROTOCOLS A.2.2, Parallel data)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.columns import kind_of
from crosslign.corpora.sampling import Lowest, generator, priorities
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import in_steps
from crosslign.examples.sentences import Groups, groups_of
from crosslign.examples.shapes import checked, row_lists, shaped
from crosslign.languages import pair_of

BITEXT = ("id", "a_lang", "a_text", "b_lang", "b_text")
SIDES = ("a_id", "a_lang", "a_text", "b_id", "b_lang", "b_text")


@BUILDERS.register
def build(
    material: Material,
    *,
    pairs: Sequence[str] = (),
    per_group: int = 1,
    max_per_pair: int | None = None,
    orientation: Literal["random", "as_is"] = "random",
) -> Iterator[pa.Table]:
    """Yield `pairs` of translations.

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
    source = _Source(material, [pair_of(pair) for pair in pairs], per_group)
    bounds = None if max_per_pair is None else _bounds(source, max_per_pair, material.seed)
    for part in source.parts(texts=True):
        found = part if bounds is None else part.filter(pa.array(_taken(part, bounds, material.seed)))
        yield _shaped(_turned(found, material.seed) if orientation == "random" else found)


@dataclass(frozen=True)
class _Source:
    """All pairs of wanted languages: those of the bitexts, then those drawn from groups.

    Attributes:
        material: the corpora.
        order: wanted language pairs; all of the material's languages where empty.
        per_group: pairs of each group and language pair.
    """

    material: Material
    order: Sequence[tuple[str, str]]
    per_group: int

    def parts(self, *, texts: bool) -> Iterator[pa.Table]:
        """Yield the pairs in the columns `SIDES`, in equal order each time; without the texts on demand."""
        bitexts = [rows for rows in self.material.corpora.values() if kind_of(rows.columns) != "multiway"]
        for rows in checked(bitexts, BITEXT, self.material.name) if bitexts else ():
            for part in rows.parts(BITEXT if texts else [name for name in BITEXT if not name.endswith("_text")]):
                found = part.filter(self._wanted(part))
                columns = {name: found["id" if name.endswith("_id") else name] for name in SIDES if texts or not name.endswith("_text")}
                yield pa.table(columns)
        if not bitexts or len(bitexts) < len(self.material.corpora):
            yield from self._from_groups(texts=texts)

    def _wanted(self, part: pa.Table) -> pa.ChunkedArray:
        both = pc.binary_join_element_wise(part["a_lang"], part["b_lang"], "\x1f")
        pairs = {frozenset(pair) for pair in self.order}
        langs = set(self.material.langs)
        found = [(name, set(name.split("\x1f"))) for name in both.drop_null().unique().to_pylist()]
        kept = [name for name, pair in found if (pair in pairs if pairs else not langs or pair <= langs)]
        return pc.is_in(both, value_set=pa.array(kept, pa.string()))

    @cached_property
    def _drawn(self) -> tuple[Groups, NDArray[np.int64]]:
        """Groups of the multiway corpora, and row numbers of the pairs drawn from them, one pair after another."""
        multiway = {name: rows for name, rows in self.material.corpora.items() if kind_of(rows.columns) == "multiway"}
        checked(list(multiway.values()), (), self.material.name)
        groups, drawn = groups_of(multiway, self.material.langs, self.material.name), array("q")
        for name, versions in groups.items():
            for pair in _drawn(versions, name, self.order, self.per_group, self.material.seed):
                drawn.extend(pair)
        return groups, np.array(drawn, np.int64)

    def _from_groups(self, *, texts: bool) -> Iterator[pa.Table]:
        groups, drawn = self._drawn
        columns = ["id", "lang", *["text"] * texts]
        for part in in_steps(groups.gathered(columns, drawn), len(drawn), 2):
            sides = {side: part.take(pa.array(np.arange(first, part.num_rows, 2))) for first, side in enumerate("ab")}
            yield pa.table({f"{side}_{name}": sides[side][name] for side in "ab" for name in columns})


def _drawn(
    versions: Mapping[str, Sequence[int]], group: str, order: Sequence[tuple[str, str]], per_group: int, seed: int
) -> Iterator[tuple[int, int]]:
    for a, b in order or combinations(sorted(versions), 2):
        if a in versions and b in versions:
            choices = list(product(versions[a], versions[b]))
            yield from generator(seed, group, a, b).sample(choices, min(per_group, len(choices)))


def _pairs_of(part: pa.Table) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield each language pair, its languages in order, and which rows are of it."""
    names = pc.binary_join_element_wise(part["a_lang"], part["b_lang"], "\x1f").to_pylist()
    codes = {name: "\x1f".join(sorted(name.split("\x1f"))) for name in set(names)}
    column = np.array([codes[name] for name in names], dtype=object)
    for pair in sorted(set(codes.values())):
        yield pair, column == pair


def _priorities(part: pa.Table, seed: int) -> NDArray[np.uint64]:
    return priorities(pc.binary_join_element_wise(part["a_id"], part["b_id"], "\x1f").to_pylist(), seed)


def _bounds(source: _Source, most: int, seed: int) -> dict[str, np.uint64]:
    """Return the greatest priority of the rows that a bound on each language pair leaves, by pair."""
    lowest: dict[str, Lowest] = {}
    for part in source.parts(texts=False):
        values = _priorities(part, seed)
        for pair, rows in _pairs_of(part):
            lowest.setdefault(pair, Lowest(most)).add(values[rows])
    return {pair: found.final() for pair, found in lowest.items()}


def _taken(part: pa.Table, bounds: Mapping[str, np.uint64], seed: int) -> NDArray[np.bool_]:
    """Return which rows the bounds leave."""
    values, taken = _priorities(part, seed), np.zeros(part.num_rows, bool)
    for pair, rows in _pairs_of(part):
        taken |= rows & (values <= bounds[pair])
    return taken


def _turned(part: pa.Table, seed: int) -> pa.Table:
    """Swap the sides of rows drawn by their ids."""
    ids = zip(part["a_id"].to_pylist(), part["b_id"].to_pylist(), strict=True)
    swap = pa.array(np.fromiter((generator(seed, "orientation", a, b).random() < 0.5 for a, b in ids), bool, part.num_rows))
    turned = [*SIDES[3:], *SIDES[:3]]
    return pa.table([pc.if_else(swap, part[other], part[own]) for own, other in zip(SIDES, turned, strict=True)], names=SIDES)


def _shaped(part: pa.Table) -> pa.Table:
    texts = {name: part[name] for name in ("a_text", "a_lang", "b_text", "b_lang")}
    return shaped("pairs", rows=row_lists(part["a_id"], part["b_id"]), **texts)
