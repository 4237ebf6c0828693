"""How much of each evaluation corpus stands in each corpus (docs/filters-and-views.md), whatever languages are asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosslign.corpora.columns import sentences_of
from crosslign.corpora.dedup import KEY_TYPE, keys_of
from crosslign.files import iter_rows
from crosslign.files.text import csv_of

COLUMNS = ("corpus", "evaluation", "rows", "found", "all_sides", "evaluation_texts", "texts_found", "removed", "expected")


@dataclass
class _EvaluationCorpus:
    """Sorted distinct keys of an evaluation corpus's texts, and which of them were met."""

    keys: NDArray[np.bytes_]
    met: NDArray[np.bool_]

    @classmethod
    def read(cls, texts: Path) -> _EvaluationCorpus:
        found = [keys_of(column.drop_null()) for batch in iter_rows(texts, ["text", "pair_text"]) for column in batch.columns]
        keys = np.unique(np.concatenate([np.empty(0, KEY_TYPE), *found]))
        return cls(keys, np.zeros(len(keys), bool))

    def meet(self, keys: NDArray[np.bytes_]) -> NDArray[np.bool_]:
        """Return which keys belong to the set, and remember them."""
        if not len(self.keys):
            return np.zeros(len(keys), bool)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        hits = self.keys[places] == keys
        self.met[places[hits]] = True
        return np.asarray(hits)


def _side_keys(texts: pa.ChunkedArray) -> tuple[NDArray[np.bytes_], NDArray[np.bool_]]:
    """Return the key of each text, and which texts are there."""
    coded = texts.combine_chunks().dictionary_encode()
    distinct = keys_of(coded.dictionary)
    there = np.asarray(coded.indices.is_valid())
    keys = np.zeros(len(coded), KEY_TYPE)
    keys[there] = distinct[coded.indices.drop_null().to_numpy()]
    return keys, there


def measure_corpus(rows: Path, evaluations: Mapping[str, Path]) -> list[dict[str, Any]]:
    """Count, for each evaluation corpus, the rows of a corpus that hold one of its texts; batch after batch.

    Texts are equal when their deduplication keys are, whatever their languages.

    Args:
        rows: a corpus.
        evaluations: `texts` of evaluation corpora, by id.

    Returns:
        For each evaluation corpus: `evaluation`, `rows` of the corpus, `found` (rows of which any side is in the set),
        `all_sides` (rows of which every side is), `evaluation_texts` (distinct keys of the set), `texts_found` (of them, in the corpus).
    """
    sets = {name: _EvaluationCorpus.read(path) for name, path in evaluations.items()}
    total = 0
    found, whole = dict.fromkeys(sets, 0), dict.fromkeys(sets, 0)
    for batch in iter_rows(rows):
        total += batch.num_rows
        sides = [_side_keys(texts) for _, texts in sentences_of(batch)]
        for name, evaluation in sets.items():
            hits = [evaluation.meet(keys) & there for keys, there in sides]
            every = np.logical_and.reduce([hit | ~there for hit, (_, there) in zip(hits, sides, strict=True)])
            some = np.logical_or.reduce(hits)
            found[name] += int(some.sum())
            whole[name] += int((some & every).sum())
    return [
        {
            "evaluation": name,
            "rows": total,
            "found": found[name],
            "all_sides": whole[name],
            "evaluation_texts": len(evaluation.keys),
            "texts_found": int(evaluation.met.sum()),
        }
        for name, evaluation in sets.items()
    ]


def removed_by_corpus(decontaminations: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], int]:
    """Return how many training examples made of each corpus were dropped for each evaluation corpus: (corpus, evaluation) to examples.

    Args:
        decontaminations: counts of training sets, as crosslign.corpora.decontamination gives them.
    """
    removed: dict[tuple[str, str], int] = {}
    for counts in decontaminations:
        for evaluation, dropped in counts["evaluations"].items():
            for corpus, number in dropped["corpora"].items():
                removed[corpus, evaluation] = removed.get((corpus, evaluation), 0) + number
    return removed


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the matrix in long form: one line a corpus and evaluation corpus."""
    return csv_of(COLUMNS, [[row[column] for column in COLUMNS] for row in rows])


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the matrix: a line a corpus, a column an evaluation corpus, `found / removed` in each cell, `!` where none was expected."""
    evaluations = sorted({row["evaluation"] for row in rows})
    surprising = {(row["corpus"], row["evaluation"]): "! " if row["found"] and row["expected"] == "none" else "" for row in rows}
    cells = {place: f"{mark}{row['found']:,} / {row['removed']:,}" for (place, mark), row in zip(surprising.items(), rows, strict=True)}
    sizes = {row["corpus"]: row["rows"] for row in rows}
    lines = [
        "# Evaluation text in the corpora",
        "",
        "Rows of each corpus that hold a text of each evaluation set / training examples made of them that were dropped;",
        "`!` where the catalog expects none (`expect_none`).",
        "",
        "| " + " | ".join(["corpus", "rows", *evaluations]) + " |",
        "|---|" + "---:|" * (len(evaluations) + 1),
    ]
    for corpus, size in sizes.items():
        lines.append("| " + " | ".join([corpus, f"{size:,}", *(cells[corpus, evaluation] for evaluation in evaluations)]) + " |")
    return "\n".join(lines) + "\n"
