"""Labelled rows with their augmented views, for classifiers and what regularises them (docs/papers/scl.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.columns import kind_of
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import Rows, cut, gathered
from crosslign.examples.sentences import LABELLED, aligned_pairs, originals_of, usable
from crosslign.examples.shapes import checked, parts_of, shaped
from crosslign.options import Langs, Schema, ViewKind

COPY = ("id", "of", "kind", "a_lang", "a_text", "b_lang", "b_text")
AT_ONCE = 8_192
"""Rows that are given their copies together."""


@BUILDERS.register(version=1, shape="labelled", reads="labelled")
def build(
    material: Material, *, supervised: Langs = (), shared: Annotated[Sequence[ViewKind], Schema(uniqueItems=True)] = ("code_switch",)
) -> Iterator[pa.Table]:
    """Yield `labelled` examples: the rows of labelled corpora, each with its copies in the views, in source order.

    Cross-lingual transfer of SCL is `langs: [en]` with views of English rows; translate-train is all languages. There,
    code-switched copies exist of English rows only: aligned rows in other languages take them over.

    Args:
        material: labelled corpora and views of them, in `from`; rows whose first sentence is of `langs`.
        supervised: languages with labels to learn from; empty: all. Other rows serve only alignment terms.
        shared: kinds of views that aligned rows (equal group, label and place) of other languages take over.

    Raises:
        InputError: there is no labelled corpus, a view is of something else, or a view's original is in none of the corpora.
    """
    views = {name: rows for name, rows in material.corpora.items() if "of" in rows.columns}
    corpora = checked([rows for name, rows in material.corpora.items() if name not in views], LABELLED, material.name)
    if wrong := sorted(name for name, rows in views.items() if kind_of(rows.columns) != "labelled"):
        raise InputError(f"the view {wrong[0]!r} is not a copy of a labelled corpus", where=material.name)
    parts = parts_of(corpora, ["a_text", "a_lang"])
    kept = np.concatenate([np.asarray(usable(part["a_text"], part["a_lang"], material.langs), bool) for part in parts])
    counts, order = _delivered(list(views.values()), corpora, kept, frozenset(shared), material)
    starts = range(0, len(counts), AT_ONCE)
    rows = cut(_masked(parts_of(corpora, LABELLED), kept), [len(counts[start : start + AT_ONCE]) for start in starts])
    copies = cut(
        gathered(parts_of(list(views.values()), COPY), order) if views else iter([pa.table({name: [] for name in COPY})]),
        [int(counts[start : start + AT_ONCE].sum()) for start in starts],
    )
    for start, part, own in zip(starts, rows, copies, strict=True):
        yield _table(part.to_pylist(), _parted(own.to_pylist(), counts[start : start + AT_ONCE]), frozenset(supervised), bool(views))


def _masked(parts: Iterator[pa.Table], mask: NDArray[np.bool_]) -> Iterator[pa.Table]:
    """Yield the marked rows of tables that follow each other."""
    start = 0
    for part in parts:
        yield part.filter(pa.array(mask[start : start + part.num_rows]))
        start += part.num_rows


def _delivered(
    views: Sequence[Rows], corpora: Sequence[Rows], kept: NDArray[np.bool_], shared: frozenset[str], material: Material
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many copies each kept row gets, and the numbers of the copies, row after row.

    A row has its own copies, view after view, then those of its aligned rows, language after language.
    """
    rows = originals_of(views, corpora, material.name)
    copies = np.arange(len(rows))
    kinds = pa.array(sorted(shared), pa.string())
    flags = np.concatenate([np.empty(0, bool), *[pc.is_in(part["kind"], value_set=kinds).to_numpy() for part in parts_of(views, ["kind"])]])
    if flags.any() and len(frozenset(material.langs)) != 1:
        taken = copies[flags]
        for to, copy in _shared(aligned_pairs(corpora, (), material.name).rows, rows[taken], taken, len(kept)):
            rows, copies = np.concatenate([rows, to]), np.concatenate([copies, copy])
    rows, copies = rows[kept[rows]], copies[kept[rows]]
    return np.bincount(rows, minlength=len(kept))[kept], copies[np.argsort(rows, kind="stable")]


def _shared(
    aligned: NDArray[np.int64], rows: NDArray[np.int64], copies: NDArray[np.int64], size: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield, language after language, rows that have no copy of their own, and the copy that each takes over.

    Args:
        aligned: row numbers, shape [pairs, languages], -1 where there is none.
        rows: the row that each copy is of.
        copies: the copies' numbers.
        size: number of rows.
    """
    pair, place = np.full(size, -1), np.zeros(size, np.int64)
    for column in range(aligned.shape[1]):
        there = np.flatnonzero(aligned[:, column] >= 0)
        pair[aligned[there, column]], place[aligned[there, column]] = there, column
    has = np.zeros(size, bool)
    has[rows] = True
    in_pair = pair[rows] >= 0
    rows, copies = rows[in_pair], copies[in_pair]
    order = np.lexsort((copies, place[rows]))
    rows, copies = rows[order], copies[order]
    for column in range(aligned.shape[1]):
        to = aligned[pair[rows], column]
        lacks = (to >= 0) & ~has[to]
        yield to[lacks], copies[lacks]


def _parted(copies: Sequence[dict[str, Any]], counts: NDArray[np.int64]) -> list[Sequence[dict[str, Any]]]:
    ends = np.cumsum(counts).tolist()
    return [copies[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]


def _table(
    rows: Sequence[Mapping[str, Any]], found: Sequence[Sequence[Mapping[str, Any]]], supervised: frozenset[str], viewed: bool
) -> pa.Table:
    views = [[_view(row, copy) for copy in own] if viewed else None for row, own in zip(rows, found, strict=True)]
    columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in ("a_text", "a_lang", "b_text", "b_lang")}
    return shaped(
        "labelled_examples",
        rows=pa.array([[row["id"], *[copy["id"] for copy in own]] for row, own in zip(rows, found, strict=True)], pa.list_(pa.string())),
        **columns,
        label=pa.array([row["label"] for row in rows], pa.list_(pa.float32())),
        # Choices of one question in two languages are two questions.
        group=pa.array([row["group"] and f"{row['a_lang']}:{row['group']}" for row in rows], pa.string()),
        supervised=pa.array([not supervised or row["a_lang"] in supervised for row in rows], pa.bool_()),
        views=pa.array(views, pa.list_(pa.struct([(name, pa.string()) for name in ("kind", "lang", "a_text", "b_text")]))),
    )


def _view(row: Mapping[str, Any], copy: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy as a view; its language is that of the sentence that changed."""
    lang = copy["a_lang"] if copy["a_lang"] != row["a_lang"] or copy["b_text"] is None else copy["b_lang"]
    return {"kind": copy["kind"], "lang": lang, "a_text": copy["a_text"], "b_text": copy["b_text"]}
