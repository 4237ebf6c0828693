"""Evaluation sentences kept out of training sets (docs/filters-and-views.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.dedup import KeySet, keys_of
from crosslign.files import iter_rows
from crosslign.files.rows import pieces

Mask = NDArray[np.bool_]
SIDES = ("a_text", "b_text", "c_text")
SLICE = 65_536
"""Examples that are looked at together."""


def evaluation_keys(texts: Path) -> KeySet:
    """Return the keys of all texts of an evaluation corpus, second segments of pairs included."""
    keys = KeySet()
    for batch in iter_rows(texts, ["text", "pair_text"]):
        for column in batch.columns:
            keys.insert(keys_of(column.drop_null().unique()))
    return keys


class _Sentences:
    """One column of sentences.

    Args:
        texts: n sentences, some may be null.
        known: keys of all evaluation corpora.
        rows: the example that each belongs to, shape [n]; its own number where None.
    """

    def __init__(self, texts: pa.ChunkedArray, known: KeySet, rows: pa.ChunkedArray | None = None) -> None:
        there = pc.is_valid(texts).to_numpy()
        self.rows: NDArray[np.int64] = (np.arange(len(texts)) if rows is None else rows.to_numpy().astype(np.int64))[there]
        coded = texts.drop_null().combine_chunks().dictionary_encode()
        self._codes: NDArray[np.int64] = np.asarray(coded.indices).astype(np.int64)
        self._keys = keys_of(coded.dictionary)
        self._suspects = np.flatnonzero(known.contains(self._keys))  # few: they alone are looked up in each corpus

    def collide(self, keys: KeySet) -> Mask:
        """Return, for each sentence, whether its key is in the set."""
        found = np.zeros(len(self._keys), bool)
        found[self._suspects] = keys.contains(self._keys[self._suspects])
        return found[self._codes]


def _columns(table: pa.Table, known: KeySet) -> dict[str, _Sentences]:
    """Return every column of sentences of a training set; those of views are taken out of their structs."""
    columns = {name: _Sentences(table[name], known) for name in SIDES if name in table.column_names}
    if "texts" in table.column_names:
        columns["texts"] = _Sentences(pc.list_flatten(table["texts"]), known, pc.list_parent_indices(table["texts"]))
    if "views" in table.column_names:
        views, rows = pc.list_flatten(table["views"]), pc.list_parent_indices(table["views"])
        columns |= {f"views.{side}": _Sentences(pc.struct_field(views, side), known, rows) for side in ("a_text", "b_text")}
    return columns


class Decontamination:
    """Drops examples that collide with an evaluation corpus, and counts.

    Sentences collide when their deduplication keys are equal, whatever their languages are. By `side` an example goes when any of its
    sentences collides; by `pair` when all its sentences of equal meaning (`a` and `b`, or the group) collide with one corpus. Both are
    counted.

    Args:
        evaluations: `texts` of evaluation corpora, by id.
        by: `side` or `pair`.
    """

    def __init__(self, evaluations: Mapping[str, Path], by: str = "side") -> None:
        self._by_pair = by == "pair"
        self._keys = {name: evaluation_keys(path) for name, path in evaluations.items()}
        self._known = KeySet()
        for keys in self._keys.values():
            for part in keys.parts():
                self._known.insert(part)
        self._totals = {"before": 0, "after": 0, "pair_level": 0}
        self._by_set: dict[str, dict[str, Any]] = {name: {"dropped": 0, "pair_level": 0, "corpora": Counter()} for name in self._keys}

    @property
    def counts(self) -> dict[str, Any]:
        """Counts so far: before, after, pair_level, and for each evaluation corpus dropped, pair_level, and `corpora`.

        The latter are the examples dropped by the corpus or view that their rows come from.
        """
        found = {name: {**found, "corpora": dict(sorted(found["corpora"].items()))} for name, found in self._by_set.items()}
        return {**self._totals, "evaluations": found}

    def clean(self, table: pa.Table) -> pa.Table:
        """Return the examples (columns of one of the shapes) that are left."""
        return pa.concat_tables([self._cleaned(part) for part in pieces(table, SLICE)])

    def _cleaned(self, table: pa.Table) -> pa.Table:
        part = table.combine_chunks()
        dropped, paired = np.zeros(part.num_rows, bool), np.zeros(part.num_rows, bool)
        columns = _columns(part, self._known) if self._keys else {}
        for name, known in self._keys.items():
            any_side, all_sides = _collisions(columns, known, part.num_rows)
            found = self._by_set[name]
            found["dropped"] += int(any_side.sum())
            found["pair_level"] += int(all_sides.sum())
            gone = all_sides if self._by_pair else any_side
            found["corpora"].update(_corpora(part, gone))
            dropped |= gone
            paired |= all_sides
        for count, number in (("before", part.num_rows), ("after", int((~dropped).sum())), ("pair_level", int(paired.sum()))):
            self._totals[count] += number
        return table.filter(pa.array(~dropped))


def _corpora(table: pa.Table, dropped: Mask) -> Counter[str]:
    """Return how many of the marked examples have rows of each corpus or view: what stands before the first colon of a row's id."""
    found: Counter[str] = Counter()
    for rows in table["rows"].filter(pa.array(dropped)).to_pylist():
        found.update({row.split(":", 1)[0] for row in rows})
    return found


def _collisions(columns: Mapping[str, _Sentences], keys: KeySet, rows: int) -> tuple[Mask, Mask]:
    """Return, for each example, whether any sentence collides, and whether all of equal meaning do."""
    any_side = np.zeros(rows, bool)
    alike, alike_hits = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for name, sentences in columns.items():
        hits = sentences.collide(keys)
        any_side[sentences.rows[hits]] = True
        if name in ("a_text", "b_text", "texts"):
            alike += np.bincount(sentences.rows, minlength=rows)
            alike_hits += np.bincount(sentences.rows[hits], minlength=rows)
    return any_side, (alike > 0) & (alike == alike_hits)
