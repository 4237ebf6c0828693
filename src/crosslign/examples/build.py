"""The stage of examples: build, keep evaluation sentences out, sample, write."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora.decontamination import decontaminate
from crosslign.corpora.sampling import sample
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.shapes import shape_of
from crosslign.files import read_rows, write_rows

LOG = logging.getLogger(__name__)
SEED = 42
SLICE = 1_000_000
"""Examples whose corpora are counted together."""
FIXED = frozenset({"builder", "from", "of", "langs", "seed", "decontaminate"})


def build_examples(
    name: str,
    entry: Mapping[str, Any],
    corpora: Mapping[str, Path],
    evaluations: Mapping[str, Path],
    others: Mapping[str, Path],
    out: Path,
    limit: int | None = None,
) -> dict[str, Any]:
    """Write one training set.

    Args:
        name: id of the training set; row ids are `<name>:<number of the row as built>`.
        entry: its entry: builder, from, of, langs, seed (default 42), decontaminate, and the builder's options.
        corpora: rows of the corpora and views in `from`, by id.
        evaluations: `texts` of the evaluation corpora in `decontaminate`, by id.
        others: training sets in `of`, by id.
        out: Parquet file to write, in the columns of the builder's shape.
        limit: upper bound on the rows; a sample keeps their order, a smaller one is part of a larger one.

    Returns:
        Counts: `shape`, `built`, `decontamination` (crosslign.corpora.decontamination), `rows`, `per_language`, and `per_corpus`
        (examples with a row of each corpus or view).

    Raises:
        InputError: the builder's own; it built nothing, or decontamination left nothing.
    """
    seed = entry.get("seed", SEED)
    options = {key: value for key, value in entry.items() if key not in FIXED}
    rows = _OnDemand({key: corpora[key] for key in entry.get("from", ())})
    sets = {key: read_rows(others[key]) for key in entry.get("of", ())}
    material = Material(name, rows, sets, entry.get("langs", ()), seed)
    table = BUILDERS.get(entry["builder"], where=name)(material, **options)
    if not table.num_rows:
        raise InputError(
            "no example could be built", where=name, do="Check that its corpora hold the languages, labels and groups that it needs"
        )
    shape = shape_of(table)
    built = table.num_rows
    table = table.set_column(0, "id", pa.array([f"{name}:{n}" for n in range(built)]))
    table, cleaned = decontaminate(table, {key: evaluations[key] for key in entry.get("decontaminate", ())})
    if not table.num_rows:
        raise InputError("every example holds a sentence of an evaluation set", where=name, why=str(cleaned["evaluations"]))
    if limit is not None and table.num_rows > limit:
        table = table.take(pa.array(sample(table["id"].to_pylist(), limit, seed)))
    write_rows(out, table, shape)
    LOG.info("%s: %s examples, %s kept out, %s written", name, f"{built:,}", f"{built - cleaned['after']:,}", f"{table.num_rows:,}")
    counts = {"shape": shape, "built": built, "decontamination": cleaned, "rows": table.num_rows}
    return {**counts, "per_language": _languages(table), "per_corpus": _corpora(table)}


class _OnDemand(Mapping[str, pa.Table]):
    """Rows by corpus, read whenever they are asked for: a builder that takes one corpus after another holds one at a time."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = dict(paths)

    def __getitem__(self, name: str) -> pa.Table:
        return read_rows(self._paths[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def _corpora(table: pa.Table) -> dict[str, int]:
    """Return how many examples have a row of each corpus or view: what stands before the first colon of a row's id."""
    found: Counter[str] = Counter()
    for start in range(0, table.num_rows, SLICE):
        rows = table["rows"].slice(start, SLICE).combine_chunks()
        names = pc.list_element(pc.split_pattern(pc.list_flatten(rows), ":", max_splits=1), 0)
        pairs = pa.table({"corpus": names, "example": pc.list_parent_indices(rows)}).group_by(["corpus", "example"]).aggregate([])
        found.update({row["values"]: row["counts"] for row in pairs["corpus"].value_counts().to_pylist()})
    return dict(sorted(found.items()))


def _languages(table: pa.Table) -> dict[str, int]:
    """Return how many sentences of each language there are, hard negatives included."""
    found: Counter[str] = Counter()
    for column in ("a_lang", "b_lang", "c_lang", "langs"):
        if column in table.column_names:
            values = pc.list_flatten(table[column]) if column == "langs" else table[column]
            found.update({row["values"]: row["counts"] for row in values.drop_null().value_counts().to_pylist()})
    return dict(sorted(found.items()))
