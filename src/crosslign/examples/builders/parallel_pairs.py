"""Translations of each other, from bitexts and from groups of many languages (docs/papers/msimcse.md, Parallel data)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora.columns import kind_of
from crosslign.corpora.sampling import generator, priorities
from crosslign.examples import BUILDERS, Material
from crosslign.examples.draws import bounded, drawable, smoothed
from crosslign.examples.rows import in_steps
from crosslign.examples.sentences import groups_of
from crosslign.examples.shapes import checked, lists, row_lists, shaped
from crosslign.languages import pair_of
from crosslign.options import LangPairs, Positive, Share

BITEXT = ("id", "a_lang", "a_text", "b_lang", "b_text")
SIDES = ("a_id", "a_lang", "a_text", "b_id", "b_lang", "b_text")
TEXTS = ("a_text", "a_lang", "b_text", "b_lang")


@BUILDERS.register(version=1, shape="pairs")
def build(
    material: Material,
    *,
    pairs: LangPairs = (),
    per_group: Positive = 1,
    max_per_pair: Positive | None = None,
    exponent: Share | None = None,
    orientation: Literal["random", "as_is"] = "random",
) -> Iterator[pa.Table]:
    """Yield `pairs` of translations.

    Of a bitext every row of a wanted language pair is taken. Of a group, for each wanted language pair, `per_group`
    combinations of versions are drawn without replacement, all where there are fewer. Draws depend on the seed and the
    names of groups and rows alone, not on what else is there.

    Args:
        material: bitext and multiway corpora.
        pairs: language pairs such as `en-de`, in either order; all pairs of `langs` where empty.
        per_group: pairs of each group and language pair.
        max_per_pair: bound on the rows of each language pair, drawn of those without evaluation sentences; a smaller sample is part
            of a larger one.
        exponent: share of each language pair with n rows (after the bound): p ∝ n^exponent of as many rows as there are, so rows of
            small pairs come again; sizes stay as they are where it is not given.
        orientation: which side comes first: drawn for each row, or as the row, or the pair in `pairs`, has it.
    """
    parts: Iterator[pa.Table] = map(_shaped, _Source(material, [pair_of(pair) for pair in pairs], per_group).parts())
    drawn = (_drawable(part, material.seed) for part in parts)
    if exponent is not None:
        parts = smoothed(material.clean(drawn), exponent, max_per_pair)
    elif max_per_pair is not None:
        parts = bounded(material.clean(drawn), max_per_pair)
    for part in parts:
        yield _turned(part, material.seed) if orientation == "random" else part


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

    def parts(self) -> Iterator[pa.Table]:
        """Yield the pairs in the columns `SIDES`."""
        bitexts = [rows for rows in self.material.corpora.values() if kind_of(rows.columns) != "multiway"]
        for rows in checked(bitexts, BITEXT, self.material.name) if bitexts else ():
            for part in rows.parts(BITEXT):
                found = part.filter(self._wanted(part))
                yield pa.table({name: found["id" if name.endswith("_id") else name] for name in SIDES})
        if not bitexts or len(bitexts) < len(self.material.corpora):
            yield from self._from_groups()

    def _wanted(self, part: pa.Table) -> pa.ChunkedArray:
        both = pc.binary_join_element_wise(part["a_lang"], part["b_lang"], "\x1f")
        pairs = {frozenset(pair) for pair in self.order}
        langs = set(self.material.langs)
        found = [(name, set(name.split("\x1f"))) for name in both.drop_null().unique().to_pylist()]
        kept = [name for name, pair in found if (pair in pairs if pairs else not langs or pair <= langs)]
        return pc.is_in(both, value_set=pa.array(kept, pa.string()))

    def _from_groups(self) -> Iterator[pa.Table]:
        multiway = {name: rows for name, rows in self.material.corpora.items() if kind_of(rows.columns) == "multiway"}
        checked(list(multiway.values()), (), self.material.name)
        groups, drawn = groups_of(multiway, self.material.langs, self.material.name), array("q")
        for name, versions in groups.items():
            for pair in _drawn(versions, name, self.order, self.per_group, self.material.seed):
                drawn.extend(pair)
        columns = ["id", "lang", "text"]
        for part in in_steps(groups.gathered(columns, np.array(drawn, np.int64)), len(drawn), 2):
            sides = {side: part.take(pa.array(np.arange(first, part.num_rows, 2))) for first, side in enumerate("ab")}
            yield pa.table({f"{side}_{name}": sides[side][name] for side in "ab" for name in columns})


def _drawn(
    versions: Mapping[str, Sequence[int]], group: str, order: Sequence[tuple[str, str]], per_group: int, seed: int
) -> Iterator[tuple[int, int]]:
    for a, b in order or combinations(sorted(versions), 2):
        if a in versions and b in versions:
            choices = list(product(versions[a], versions[b]))
            yield from generator(seed, group, a, b).sample(choices, min(per_group, len(choices)))


def _shaped(part: pa.Table) -> pa.Table:
    texts = {name: part[name] for name in TEXTS}
    return shaped("pairs", rows=row_lists(part["a_id"], part["b_id"]), **texts)


def _drawable(part: pa.Table, seed: int) -> pa.Table:
    """Return pairs with a priority each, by their ids, as samples of each language pair."""
    first = pc.less_equal(part["a_lang"], part["b_lang"])
    low, high = (pc.if_else(first, part[a], part[b]) for a, b in (("a_lang", "b_lang"), ("b_lang", "a_lang")))
    values = priorities(pc.binary_join(part["rows"], "\x1f").to_pylist(), seed)
    return drawable(part, values, pc.binary_join_element_wise(low, high, "\x1f"))


def _turned(part: pa.Table, seed: int) -> pa.Table:
    """Swap the sides of rows drawn by their ids."""
    swap = np.fromiter((generator(seed, "orientation", a, b).random() < 0.5 for a, b in part["rows"].to_pylist()), bool, part.num_rows)
    turned = dict(zip(TEXTS, (*TEXTS[2:], *TEXTS[:2]), strict=True))
    texts = {own: pc.if_else(pa.array(swap), part[other], part[own]) for own, other in turned.items()}
    ids = pc.list_flatten(part["rows"]).take(pa.array(np.arange(2 * part.num_rows) ^ np.repeat(swap, 2)))
    return shaped("pairs", rows=lists(ids, 2), **texts)
