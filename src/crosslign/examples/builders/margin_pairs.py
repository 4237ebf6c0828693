"""Pairs whose margin is that of good pairs: an encoder measures it, and a clean sample sets the threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosslign.corpora.borders import Border, lower_border, require_enough
from crosslign.corpora.columns import kind_of
from crosslign.corpora.filters import Sides
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material, Teach
from crosslign.examples.rows import Rows
from crosslign.examples.shapes import shape_of, shaped
from crosslign.options import Gt, Lt, Positive

Matrix = NDArray[np.float32]
Both = tuple[list[str], list[str]]
"""Sentences of the first and of the second language of a pair."""
AT_ONCE = 1_024
"""Pairs that are measured together."""
SENTENCES = ("a_text", "a_lang", "b_text", "b_lang")


@BUILDERS.register(version=1, shape="pairs")
def build(
    material: Material, *, keep: Annotated[float, Gt(0), Lt(1)] = 0.98, k: Positive = 4, pool: Positive = 10_000
) -> Iterator[pa.Table]:
    """Yield the `pairs` in `of` whose margin is at least that which the share `keep` of the good pairs in `from` has.

    The margin is the cosine of a pair over the mean of the cosines of both sentences to their `k` nearest among `pool` sentences of the
    other language, which are drawn evenly from the pairs; a sentence's own translation, and its equals, are none of its neighbours. Pairs
    of each two languages have a threshold of their own. What it kept, and the nearest 20 pairs on its two sides, stand in the training
    set's lineage and in the report.

    Args:
        material: training sets of pairs in `of`, bitext of good pairs in `from`, and the encoder that measures (`teacher`).
        keep: share of the good pairs that stays.
        k: neighbours that a margin is measured against.
        pool: sentences of a language among which neighbours are looked for, at most.

    Raises:
        InputError: no encoder is named, a set has another shape, or there are too few good pairs of two languages.
    """
    if material.teach is None:
        raise InputError("no encoder to measure margins", where=material.name, do="Name one, for example `teacher: me5_small`")
    shapes = {name: shape_of(rows.columns) for name, rows in material.others.items()}
    kinds = {name: kind_of(rows.columns) for name, rows in material.corpora.items()}
    if set(shapes.values()) != {"pairs"} or set(kinds.values()) != {"bitext"}:
        raise InputError(
            "margin_pairs needs training sets of pairs, and a bitext of good pairs", where=material.name, why=f"{shapes}, {kinds}"
        )
    measures = {pair: _Margins(both, material.teach, pair, k) for pair, both in _drawn(material.others.values(), pool).items()}
    borders = dict(_learned(material, measures, 1 - keep))
    seen = 0
    for part in (part for rows in material.others.values() for part in rows.parts(("rows", *SENTENCES))):
        for start in range(0, part.num_rows, AT_ONCE):
            rows = part.slice(start, AT_ONCE)
            kept, columns = np.ones(rows.num_rows, dtype=bool), _columns(rows)
            batch = Sides(*columns)
            for pair, at, both in _by_pair(columns):
                values = np.full(rows.num_rows, np.nan)
                values[at] = measures[pair](both)
                kept &= borders[pair].keep(values, batch, seen)
            seen += rows.num_rows
            left = rows.filter(pa.array(kept))
            yield shaped("pairs", **{name: left[name] for name in left.column_names})
    material.told["learned"] = [border.told() for border in borders.values()]


class _Margins:
    """Measures margins of pairs of two languages, against a pool of both."""

    def __init__(self, pool: Both, teach: Teach, langs: tuple[str, str], k: int) -> None:
        self._teach, self._langs, self._k = teach, langs, k
        self._number = {text: number for number, text in enumerate(dict.fromkeys([*pool[0], *pool[1]]))}
        self._pool = [(self._vectors(texts, lang), self._numbers(texts)) for texts, lang in zip(pool, langs, strict=True)]

    def _numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return a number for each text, equal ones for equal texts; -1 for what the pool has not."""
        return np.array([self._number.get(text, -1) for text in texts], dtype=np.int64)

    def _vectors(self, texts: Sequence[str], lang: str) -> Matrix:
        """Return unit vectors [n, d]."""
        parts = [self._teach(texts[at : at + AT_ONCE], [lang] * len(texts[at : at + AT_ONCE])) for at in range(0, len(texts), AT_ONCE)]
        vectors = np.concatenate([np.asarray(part, dtype=np.float32) for part in parts])
        unit: Matrix = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return unit

    def _near(self, vectors: Matrix, own: Sequence[str], side: int) -> NDArray[np.float64]:
        """Return the mean cosine of each row to its nearest in the pool of a side, but for `own`."""
        others, numbers = self._pool[side]
        cosines = vectors @ others.T
        cosines[self._numbers(own)[:, None] == numbers[None]] = -np.inf
        best = np.partition(cosines, -min(self._k, cosines.shape[1]), axis=1)[:, -self._k :]
        return np.asarray(np.ma.masked_invalid(best).mean(axis=1).filled(np.nan), dtype=np.float64)

    def __call__(self, both: Both) -> NDArray[np.float64]:
        """Return the margin of each pair; NaN where there is no neighbour."""
        left, right = (self._vectors(texts, lang) for texts, lang in zip(both, self._langs, strict=True))
        near = (self._near(left, both[1], 1) + self._near(right, both[0], 0)) / 2
        cosines: NDArray[np.float64] = np.einsum("nd,nd->n", left, right, dtype=np.float64)
        return np.round(cosines / near, 5)  # sums of floats come in any order: the last bits are chance


def _columns(rows: pa.Table) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    a_text, a_lang, b_text, b_lang = (rows[name].to_pylist() for name in SENTENCES)
    return a_text, a_lang, b_text, b_lang


def _by_pair(columns: Sequence[Sequence[Any]]) -> Iterator[tuple[tuple[str, str], NDArray[np.int64], Both]]:
    """Yield, for each two languages in the order of their codes, the numbers of their rows, and their sentences in that order."""
    found: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
    for at, (left, one, right, other) in enumerate(zip(*columns, strict=True)):
        if left and right:
            turned = one > other
            pair = (other, one) if turned else (one, other)
            found.setdefault(pair, []).append((at, right, left) if turned else (at, left, right))
    for pair, items in sorted(found.items()):
        numbers, first, second = zip(*items, strict=True)
        yield pair, np.array(numbers), (list(first), list(second))


def _drawn(sets: Iterable[Rows], most: int) -> dict[tuple[str, str], Both]:
    """Return sentences of each two languages, drawn evenly from the pairs."""
    sets = list(sets)
    step = max(1, -(-sum(rows.size for rows in sets) // most))
    found: dict[tuple[str, str], Both] = {}
    for part in (part for rows in sets for part in rows.parts(SENTENCES)):
        for pair, _, both in _by_pair(_columns(part)):
            for drawn, texts in zip(found.setdefault(pair, ([], [])), both, strict=True):
                drawn.extend(texts[::step])
    return found


def _learned(material: Material, measures: dict[tuple[str, str], _Margins], alpha: float) -> Iterator[tuple[tuple[str, str], Border]]:
    """Yield the threshold of each two languages."""
    values: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    for part in (part for rows in material.corpora.values() for part in rows.parts(SENTENCES)):
        for start in range(0, part.num_rows, AT_ONCE):
            for pair, _, both in _by_pair(_columns(part.slice(start, AT_ONCE))):
                if pair in measures:
                    values.setdefault(pair, []).append(measures[pair](both))
    for pair in measures:
        own = np.concatenate(values.get(pair, [np.zeros(0)]))
        own = own[~np.isnan(own)]
        name = f"margin of {pair[0]} and {pair[1]}"
        require_enough(own, "pairs", name, f"{material.name}: margin_pairs")
        yield pair, lower_border(name, own, alpha)
