"""Groups of sentences of equal meaning, one a language (docs/papers/mpcl.md)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosslign.corpora.sampling import generator, priorities
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.draws import bounded, drawable
from crosslign.examples.rows import in_steps
from crosslign.examples.sentences import groups_of
from crosslign.examples.shapes import lists, shaped
from crosslign.options import AtLeastTwo, Positive


@BUILDERS.register(version=1, shape="groups")
def build(material: Material, *, size: AtLeastTwo | None = None, max_groups: Positive | None = None) -> Iterator[pa.Table]:
    """Yield `groups` of `size` sentences in as many languages, in source order.

    Where a group has more languages, `size` of them are drawn; where a language has several versions, one is drawn.
    Groups with fewer languages are left out. Draws depend on the seed and the group alone.

    Args:
        material: multiway corpora.
        size: sentences of a group, at least 2 (default: the number of `langs`).
        max_groups: bound on the groups, drawn of those without evaluation sentences; a smaller sample is part of a larger one.

    Raises:
        InputError: no size can be known, or no group is large enough.
    """
    size = size or len(material.langs)
    if size < 2:
        raise InputError("a group needs two or more sentences", where=material.name, do="Give `size` or `langs`")
    groups = groups_of(material.corpora, material.langs, material.name)
    chosen, values = array("q"), array("Q")
    for name, versions in groups.items():
        if len(versions) >= size:
            draw = generator(material.seed, name)
            chosen.extend(draw.choice(versions[lang]) for lang in sorted(draw.sample(sorted(versions), size)))
            values.extend(priorities([name], material.seed).tolist())
    if not chosen:
        raise InputError(f"no group has {size} languages", where=material.name, do="Lower `size`, or name languages that the corpus has")
    kept, keys = np.frombuffer(chosen, np.int64), np.frombuffer(values, np.uint64)
    parts = (_shaped(part, size) for part in in_steps(groups.gathered(["id", "text", "lang"], kept), len(kept), size))
    yield from parts if max_groups is None else bounded(material.clean(_drawable(parts, keys)), max_groups)


def _shaped(part: pa.Table, size: int) -> pa.Table:
    return shaped("groups", rows=lists(part["id"], size), texts=lists(part["text"], size), langs=lists(part["lang"], size))


def _drawable(parts: Iterable[pa.Table], keys: NDArray[np.uint64]) -> Iterator[pa.Table]:
    """Yield groups with the priority of each."""
    start = 0
    for part in parts:
        yield drawable(part, keys[start : start + part.num_rows])
        start += part.num_rows
