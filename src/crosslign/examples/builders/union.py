"""Training sets mixed: plain union and shuffle (docs/papers/msimcse.md, Mixing)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.filters import Setting
from crosslign.corpora.filters.exact_duplicate import ExactDuplicate
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import gathered
from crosslign.examples.shapes import shape_of, shaped
from crosslign.files.rows import SCHEMAS
from crosslign.options import Positive

TEXTS = ("a_text", "a_lang", "b_text", "b_lang")


@BUILDERS.register(version=1)
def build(
    material: Material, *, drop_hard_negatives: bool = False, repeat: Mapping[str, Positive] | None = None, unique: bool = False
) -> Iterator[pa.Table]:
    """Yield the rows of the training sets in `of`, shuffled by the seed.

    Pairs among triplets become triplets without a hard negative.

    Args:
        material: the training sets.
        drop_hard_negatives: make pairs from triplets.
        repeat: how often to take the rows of a training set, by id (default: once).
        unique: leave out pairs whose two sentences (case, width, spaces and punctuation do not count), in either order, an earlier row has.

    Raises:
        InputError: there are none, or their shapes cannot be mixed, or `repeat` names another.
    """
    times = dict(repeat or {})
    if not material.others or set(times) - set(material.others):
        raise InputError(
            "a union needs training sets in `of`, and one `repeat` for each",
            where=material.name,
            why=f"`of` has {list(material.others)}, `repeat` {list(times)}",
        )
    shapes = {shape_of(rows.columns) for rows in material.others.values()}
    if len(shapes) > 1 and shapes != {"pairs", "triplets"}:
        raise InputError("training sets of these shapes cannot be mixed", where=material.name, why=", ".join(sorted(shapes)))
    shape = next(iter(shapes))
    if "triplets" in shapes:
        shape = "pairs" if drop_hard_negatives else "triplets"
    if unique and shape != "pairs":
        raise InputError("`unique` is only for pairs", where=material.name, why=f"the union has {shape}")
    new = _new(material) if unique else {name: np.arange(rows.size) for name, rows in material.others.items()}
    names = [name for name in material.others for _ in range(times.get(name, 1))]
    taken = [material.others[name] for name in names]
    starts = np.cumsum([0, *(rows.size for rows in taken)])
    numbers = [start + new[name] for name, start in zip(names, starts, strict=False)]
    order = np.random.default_rng(material.seed).permutation(np.concatenate(numbers))
    yield from gathered((_as(shape, part) for rows in taken for part in rows.parts(rows.columns)), order)


def _as(shape: str, table: pa.Table) -> pa.Table:
    return shaped(shape, **{name: table[name] for name in SCHEMAS[shape].names if name in table.column_names})


def _new(material: Material) -> dict[str, NDArray[np.int64]]:
    """Return the numbers of the rows of each set whose sentences no earlier row has."""
    parts = (_turned(part) for rows in material.others.values() for part in rows.parts(TEXTS))
    kept = ExactDuplicate(Setting(where=material.name)).new(parts)
    mask, start, new = np.concatenate([np.empty(0, bool), *(found for _, found in kept)]), 0, {}
    for name, rows in material.others.items():
        new[name] = np.flatnonzero(mask[start : start + rows.size])
        start += rows.size
    return new


def _turned(part: pa.Table) -> pa.Table:
    """Return pairs in the order of their languages, so that it does not matter which side came first."""
    swap = pc.fill_null(pc.greater(part["a_lang"], part["b_lang"]), False)
    others = (*TEXTS[2:], *TEXTS[:2])
    return pa.table({one: pc.if_else(swap, part[other], part[one]) for one, other in zip(TEXTS, others, strict=True)})
