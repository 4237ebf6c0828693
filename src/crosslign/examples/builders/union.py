"""Training sets mixed: plain union and shuffle (PROTOCOLS A.2.2, Mixing)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import gathered
from crosslign.examples.shapes import shape_of, shaped
from crosslign.files.rows import SCHEMAS


@BUILDERS.register
def build(material: Material, *, drop_hard_negatives: bool = False, repeat: Mapping[str, int] | None = None) -> Iterator[pa.Table]:
    """Yield the rows of the training sets in `of`, shuffled by the seed.

    Pairs among triplets become triplets without a hard negative.

    Args:
        material: the training sets.
        drop_hard_negatives: make pairs of triplets.
        repeat: how many times the rows of a training set are taken, by id (once where it is not named).

    Raises:
        InputError: there are none, or their shapes cannot be mixed, or `repeat` names another.
    """
    times = dict(repeat or {})
    if not material.others or set(times) - set(material.others):
        raise InputError(
            "a union is made of the training sets in `of`",
            where=material.name,
            why=f"`of` has {list(material.others)}, `repeat` {list(times)}",
        )
    shapes = {shape_of(rows.columns) for rows in material.others.values()}
    if len(shapes) > 1 and shapes != {"pairs", "triplets"}:
        raise InputError("training sets of these shapes cannot be mixed", where=material.name, why=", ".join(sorted(shapes)))
    shape = next(iter(shapes))
    if "triplets" in shapes:
        shape = "pairs" if drop_hard_negatives else "triplets"
    taken = [rows for name, rows in material.others.items() for _ in range(times.get(name, 1))]
    order = np.random.default_rng(material.seed).permutation(sum(rows.size for rows in taken))
    yield from gathered((_as(shape, part) for rows in taken for part in rows.parts(rows.columns)), order)


def _as(shape: str, table: pa.Table) -> pa.Table:
    return shaped(shape, **{name: table[name] for name in SCHEMAS[shape].names if name in table.column_names})
