"""Labelled rows with their augmented views, for classifiers and what regularises them (PROTOCOLS A.4.2, A.4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from crosslign.corpora.columns import kind_of
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.sentences import LABELLED, aligned_pairs
from crosslign.examples.shapes import joined, shaped

Copies = dict[str, list[dict[str, Any]]]


@BUILDERS.register
def build(material: Material, *, supervised: Sequence[str] = (), shared: Sequence[str] = ("code_switch",)) -> pa.Table:
    """Return `labelled` examples: the rows of labelled corpora, each with its copies in the views, in source order.

    Cross-lingual transfer of SCL is `langs: [en]` with views of English rows; translate-train is all languages. There,
    code-switched copies exist of English rows only: aligned rows in other languages take them over.

    Args:
        material: labelled corpora and views of them, in `from`; rows whose first sentence is of `langs`.
        supervised: languages whose labels may be learnt from; all where empty. Other rows are for alignment terms alone.
        shared: kinds of views that aligned rows (equal group, label and place) of other languages take over.

    Raises:
        InputError: there is no labelled corpus, a view is of something else, or a view's original is in none of the corpora.
    """
    views = {name: table for name, table in material.corpora.items() if "of" in table.column_names}
    corpora = {name: table for name, table in material.corpora.items() if name not in views}
    if wrong := sorted(name for name, table in views.items() if kind_of(table.column_names) != "labelled"):
        raise InputError(f"the view {wrong[0]!r} copies no labelled corpus", where=material.name)
    rows = joined(list(corpora.values()), LABELLED, material.name).to_pylist()
    copies = _copies(views.values(), {row["id"] for row in rows}, material.name)
    wanted = frozenset(material.langs)
    if any(copy["kind"] in shared for found in copies.values() for copy in found) and len(wanted) != 1:
        _share(copies, corpora, material, frozenset(shared))
    kept = [row for row in rows if row["a_text"] is not None and (not wanted or row["a_lang"] in wanted)]
    return _table(kept, copies, frozenset(supervised), bool(views))


def _copies(views: Iterable[pa.Table], known: set[str], name: str) -> Copies:
    """Return the copies of each row by its id, view after view."""
    copies: Copies = {}
    for table in views:
        for copy in table.to_pylist():
            if copy["of"] not in known:
                what = f"the original {copy['of']!r} is in none of the corpora"
                raise InputError(what, where=name, do="Name in `from` the corpus that the view copies")
            copies.setdefault(copy["of"], []).append(copy)
    return copies


def _share(copies: Copies, corpora: Mapping[str, pa.Table], material: Material, kinds: frozenset[str]) -> None:
    """Give the copies of some kinds to the aligned rows that have none of these kinds."""
    pairs = aligned_pairs(corpora, (), material.name)
    ids = pairs.table["id"].to_pylist()
    for numbers in pairs.rows.tolist():
        aligned = [ids[row] for row in numbers if row >= 0]
        given = [copy for row in aligned for copy in copies.get(row, ()) if copy["kind"] in kinds]
        for row in aligned if given else ():
            if not any(copy["kind"] in kinds for copy in copies.get(row, ())):
                copies.setdefault(row, []).extend(given)


def _table(rows: Sequence[Mapping[str, Any]], copies: Copies, supervised: frozenset[str], viewed: bool) -> pa.Table:
    found = [copies.get(row["id"], []) for row in rows]
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
