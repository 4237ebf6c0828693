"""Premises in several languages with a contradicting sentence: MPCL's groups with hard negatives (PROTOCOLS A5.5, A5.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import SHELF, cut
from crosslign.examples.sentences import Aligned, aligned_pairs
from crosslign.examples.shapes import lists, shaped


@BUILDERS.register
def build(
    material: Material,
    *,
    size: int | None = None,
    per: Literal["row", "premise"] = "row",
    hard_negatives: bool = True,
    contradiction: int = 2,
) -> Iterator[pa.Table]:
    """Yield `groups` of a premise in `size` languages, drawn where it has more.

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
    pairs = aligned_pairs(list(material.corpora.values()), material.langs, material.name)
    premises = pairs.premises()
    against: dict[str, list[int]] = {}
    for pair in np.flatnonzero(pairs.labels == contradiction).tolist() if hard_negatives else []:
        against.setdefault(premises[pair], []).append(pair)
    first: dict[str, int] = {}
    for pair, premise in enumerate(premises):
        first.setdefault(premise, pair)
    chosen = range(len(pairs.rows)) if per == "row" else first.values()
    drawn = (_drawn(pairs, pair, against.get(premises[pair], []), size, material.seed) for pair in chosen)
    flat = np.fromiter((row for group in drawn for row in group), np.int64).reshape(-1, size + 1)
    if not len(flat):
        raise InputError(
            f"no premise is in {size} languages", where=material.name, do="Lower `size`, or name languages that the corpus has"
        )
    yield from _tables(pairs, flat)


def _drawn(pairs: Aligned, pair: int, against: list[int], size: int, seed: int) -> Iterable[int]:
    """Return the rows of a group's members, and that of its hard negative or -1; nothing where it has too few languages."""
    there = [row for row in pairs.rows[pair].tolist() if row >= 0]
    if len(there) < size:
        return ()
    draw = generator(seed, pairs.ids[there[0]].as_py())
    members = sorted(draw.sample(there, size), key=there.index)
    hard = [row for row in pairs.rows[draw.choice(against)].tolist() if row >= 0] if against else []
    return [*members, draw.choice(hard) if hard else -1]


def _tables(pairs: Aligned, groups: NDArray[np.int64]) -> Iterator[pa.Table]:
    """Yield groups of row numbers, int64 of shape [groups, size + 1], the hard negative or -1 last."""
    size = groups.shape[1] - 1
    parts = [groups[start : start + SHELF // size] for start in range(0, len(groups), SHELF // size)]
    member_rows = pairs.gathered(["id", "a_text", "a_lang"], groups[:, :size].ravel())
    hard_rows = pairs.gathered(["id", "b_text", "b_lang"], groups[groups[:, size] >= 0, size])
    members = cut(member_rows, (len(part) * size for part in parts))
    hards = cut(hard_rows, (int((part[:, size] >= 0).sum()) for part in parts))
    for part, member, hard in zip(parts, members, hards, strict=True):
        place = np.cumsum(part[:, size] >= 0) - 1
        own = pa.array(place, mask=part[:, size] < 0)  # the group's row among the hard negatives
        negatives = hard.take(own)
        ids, added = member["id"].to_pylist(), negatives["id"].to_pylist()
        starts = range(0, len(part) * size, size)
        rows = [ids[start : start + size] + ([extra] if extra else []) for start, extra in zip(starts, added, strict=True)]
        yield shaped(
            "groups",
            rows=pa.array(rows, pa.list_(pa.string())),
            texts=lists(member["a_text"], size),
            langs=lists(member["a_lang"], size),
            c_text=negatives["b_text"],
            c_lang=negatives["b_lang"],
        )
