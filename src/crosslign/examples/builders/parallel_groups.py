"""Groups of sentences of equal meaning, one a language (PROTOCOLS A5.5)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from crosslign.corpora.sampling import generator, sample
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import SHELF
from crosslign.examples.sentences import groups_of
from crosslign.examples.shapes import lists, pick, shaped


@BUILDERS.register
def build(material: Material, *, size: int | None = None, max_groups: int | None = None) -> Iterator[pa.Table]:
    """Yield `groups` of `size` sentences in as many languages, in source order.

    Where a group has more languages, `size` of them are drawn; where a language has several versions, one is drawn.
    Groups with fewer languages are left out. Draws hang on the seed and the group alone.

    Args:
        material: multiway corpora.
        size: sentences of a group, at least 2; the number of `langs` where it is not given.
        max_groups: bound on the groups; a smaller sample is part of a larger one.

    Raises:
        InputError: no size can be known, or no group is large enough.
    """
    size = size or len(material.langs)
    if size < 2:
        raise InputError("a group has at least two sentences", where=material.name, do="Give `size` or `langs`")
    groups = groups_of(material.corpora, material.langs, material.name)
    chosen = array("q")
    large = [group for group, versions in groups.members.items() if len(versions) >= size]
    kept = large if max_groups is None else [large[place] for place in sample(large, max_groups, material.seed)]
    for group in kept:
        versions, draw = groups.members[group], generator(material.seed, group)
        langs = sorted(draw.sample(sorted(versions), size))
        chosen.extend(draw.choice(versions[lang]) for lang in langs)
    if not chosen:
        raise InputError(f"no group has {size} languages", where=material.name, do="Lower `size`, or name languages that the corpus has")
    rows, step = np.frombuffer(chosen, np.int64), SHELF // size * size
    for start in range(0, len(rows), step):
        part = pick(groups.table, rows[start : start + step])
        yield shaped("groups", rows=lists(part["id"], size), texts=lists(part["text"], size), langs=lists(part["lang"], size))
