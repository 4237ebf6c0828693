"""Premises in several languages with a contradicting sentence: MPCL's groups with hard negatives (docs/papers/mpcl.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.sampling import generator, priorities
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.draws import bounded, drawable
from crosslign.examples.rows import SHELF, cut
from crosslign.examples.sentences import Aligned, aligned_pairs
from crosslign.examples.shapes import lists, shaped
from crosslign.options import AtLeastTwo, Natural, Positive


@BUILDERS.register(version=1, shape="groups", reads="labelled")
def build(
    material: Material,
    *,
    size: AtLeastTwo | None = None,
    per: Literal["row", "premise", "unique_sentences"] = "row",
    max_groups: Positive | None = None,
    hard_negatives: bool = True,
    contradiction: Natural = 2,
) -> Iterator[pa.Table]:
    """Yield `groups` of a premise in `size` languages, drawn where it has more.

    The hard negative is the contradicting sentence of the same premise (of several, one is drawn) in a drawn language; a
    premise without any has none. Draws depend on the seed and the premise's row alone.

    Args:
        material: labelled corpora whose aligned rows share their group.
        size: members of a group, at least 2 (default: the number of `langs`).
        per: one group for each aligned row (a premise comes as often as it has rows: the reading of the paper's 400 k), for each
            distinct premise, or for each distinct sentence, premises and hypotheses alike (the other reading).
        max_groups: bound on the groups, drawn of those without evaluation sentences; a smaller sample is part of a larger one.
        hard_negatives: add the contradicting sentences.
        contradiction: class number of contradicting rows.

    Raises:
        InputError: no size can be known, no premise has so many languages, or hypotheses are to have hard negatives.
    """
    size = size or len(material.langs)
    if size < 2:
        raise InputError("a group needs two or more sentences", where=material.name, do="Give `size` or `langs`")
    if per == "unique_sentences" and hard_negatives:
        raise InputError("hypotheses have no hard negatives", where=material.name, do="Set `hard_negatives: false`, or `per: premise`")
    pairs = aligned_pairs(list(material.corpora.values()), material.langs, material.name)
    premises = pairs.premises()
    against: dict[str, list[int]] = {}
    for pair in np.flatnonzero(pairs.labels == contradiction).tolist() if hard_negatives else []:
        against.setdefault(premises[pair], []).append(pair)
    chosen = _chosen(pairs, premises, per)
    drawn = (_drawn(pairs, pair, side, against.get(premises[pair], []), size, material.seed) for pair, side in chosen)
    flat = np.fromiter((row for group in drawn for row in group), np.int64).reshape(-1, size + 2)
    if not len(flat):
        raise InputError(
            f"no premise exists in {size} languages", where=material.name, do="Lower `size`, or name languages that the corpus has"
        )
    parts = [flat[start : start + SHELF // size] for start in range(0, len(flat), SHELF // size)]
    tables = _tables(pairs, parts)
    if max_groups is None:
        yield from tables
    else:
        drawable_tables = (_drawable(table, part[:, 0], material.seed) for table, part in zip(tables, parts, strict=True))
        yield from bounded(material.clean(drawable_tables), max_groups)


def _chosen(pairs: Aligned, premises: list[str], per: str) -> Iterable[tuple[int, int]]:
    """Return the pair and the side (0, 1) of each sentence that is to be a group."""
    if per == "row":
        return ((pair, 0) for pair in range(len(premises)))
    first: dict[str, tuple[int, int]] = {}
    for pair, premise in enumerate(premises):
        first.setdefault(premise, (pair, 0))
    for pair, hypothesis in enumerate(pairs.texts("b") if per == "unique_sentences" else ()):
        if hypothesis is not None:
            first.setdefault(hypothesis, (pair, 1))
    return first.values()


def _drawn(pairs: Aligned, pair: int, side: int, against: list[int], size: int, seed: int) -> Iterable[int]:
    """Return a group's side, its members' rows, and that of its hard negative or -1; nothing where it has too few languages."""
    there = [row for row in pairs.rows[pair].tolist() if row >= 0]
    if len(there) < size:
        return ()
    draw = generator(seed, pairs.ids[there[0]].as_py(), *["b"] * side)
    members = sorted(draw.sample(there, size), key=there.index)
    hard = [row for row in pairs.rows[draw.choice(against)].tolist() if row >= 0] if against else []
    return [side, *members, draw.choice(hard) if hard else -1]


def _drawable(table: pa.Table, sides: NDArray[np.int64], seed: int) -> pa.Table:
    rows = pc.binary_join(table["rows"], "\x1f").to_pylist()
    return drawable(table, priorities([f"{side}\x1f{names}" for side, names in zip(sides.tolist(), rows, strict=True)], seed))


def _tables(pairs: Aligned, parts: Sequence[NDArray[np.int64]]) -> Iterator[pa.Table]:
    """Yield groups of row numbers, int64 of shape [groups, size + 2]: the side first, the hard negative or -1 last."""
    groups = np.concatenate(parts)
    size = groups.shape[1] - 2
    both = bool(groups[:, 0].any())
    member_rows = pairs.gathered(["id", "a_text", "a_lang", *["b_text"] * both], groups[:, 1:-1].ravel())
    hard_rows = pairs.gathered(["id", "b_text", "b_lang"], groups[groups[:, -1] >= 0, -1])
    members = cut(member_rows, (len(part) * size for part in parts))
    hards = cut(hard_rows, (int((part[:, -1] >= 0).sum()) for part in parts))
    for part, member, hard in zip(parts, members, hards, strict=True):
        place = np.cumsum(part[:, -1] >= 0) - 1
        own = pa.array(place, mask=part[:, -1] < 0)  # the group's row among the hard negatives
        negatives = hard.take(own)
        ids, added = member["id"].to_pylist(), negatives["id"].to_pylist()
        starts = range(0, len(part) * size, size)
        rows = [ids[start : start + size] + ([extra] if extra else []) for start, extra in zip(starts, added, strict=True)]
        sides = pa.array(np.repeat(part[:, 0] == 1, size))
        texts = pc.if_else(sides, member["b_text"], member["a_text"]) if both else member["a_text"]
        yield shaped(
            "groups",
            rows=pa.array(rows, pa.list_(pa.string())),
            texts=lists(texts, size),
            langs=lists(member["a_lang"], size),
            c_text=negatives["b_text"],
            c_lang=negatives["b_lang"],
        )
