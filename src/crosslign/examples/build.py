"""Training sets: built, without evaluation sentences, sampled from what is left, written."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora.decontamination import Decontamination
from crosslign.corpora.sampling import sampled
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material, Teach
from crosslign.examples.rows import Rows
from crosslign.examples.shapes import shape_of
from crosslign.files import write_batches
from crosslign.files.temporary import temporary_folder
from crosslign.registry import options_of

log = logging.getLogger(__name__)
SEED = 42


def build_examples(
    name: str,
    entry: Mapping[str, Any],
    corpora: Mapping[str, Path],
    evaluations: Mapping[str, Path],
    others: Mapping[str, Path],
    out: Path,
    limit: int | None = None,
    teach: Teach | None = None,
) -> dict[str, Any]:
    """Write one training set, in bounded memory (temporary files: TMPDIR).

    Args:
        name: id of the training set; row ids are `<name>:<number of the row as built>`.
        entry: its entry: builder, from, of, langs, seed (default 42), decontaminate, decontaminate_by, and the builder's options.
        corpora: rows of the corpora and views in `from`, by id.
        evaluations: `texts` of the evaluation corpora in `decontaminate`, by id.
        others: training sets in `of`, by id.
        out: Parquet file to write, in the columns of the builder's shape.
        limit: upper bound on the rows; a sample keeps their order, a smaller one is part of a larger one.
        teach: gives the teacher's vectors, where the entry names one.

    Returns:
        Counts: `shape`, `built` (all examples, those that a sample was drawn from), `decontamination`
        (crosslign.corpora.decontamination), `rows`, `per_language`, `per_corpus` (examples with a row of each corpus or view), and what
        the builder told.

    Raises:
        InputError: the builder's own; it built nothing, or decontamination left nothing.
    """
    seed = entry.get("seed", SEED)
    rows = {key: Rows.of_file(corpora[key]) for key in entry.get("from", ())}
    sets = {key: Rows.of_file(others[key]) for key in entry.get("of", ())}
    kept_out = {key: evaluations[key] for key in entry.get("decontaminate", ())}
    cleaner = _Cleaner(Decontamination(kept_out, entry.get("decontaminate_by", "side")), name)
    material = Material(name, rows, sets, entry.get("langs", ()), seed, cleaner, teach)
    parts = (part for part in BUILDERS.get(entry["builder"], where=name)(material, **options_of("examples", entry)) if part.num_rows)
    first = next(parts, None)
    if first is None:
        raise InputError(
            "no example could be built", where=name, do="Check that its corpora have the languages, labels and groups that it needs"
        )
    shape = shape_of(first.column_names)
    tally = _Tally()
    with temporary_folder("crosslign-examples-") as folder:
        built = _numbered(chain([first], parts), name)
        kept = built if cleaner.asked else cleaner(built)
        left = kept if limit is None else sampled(kept, Path(folder, "rows.arrow"), limit, seed)
        written = write_batches(out, map(tally.counted, left), shape)
    found = cleaner.counts
    numbers = (found["before"], found["before"] - found["after"], written)
    log.info("%s: %s examples, %s removed as evaluation text, %s written", name, *map("{:,}".format, numbers))
    counts = {"shape": shape, "built": found["before"], "decontamination": found, "rows": written}
    counts |= {"per_language": dict(sorted(tally.langs.items())), "per_corpus": dict(sorted(tally.corpora.items()))}
    return {**counts, **material.told}


def _numbered(parts: Iterable[pa.Table], name: str) -> Iterator[pa.Table]:
    """Give each example its id."""
    start = 0
    for part in parts:
        yield part.set_column(0, "id", pa.array([f"{name}:{n}" for n in range(start, start + part.num_rows)]))
        start += part.num_rows


class _Cleaner:
    """Yields what decontamination leaves.

    Attributes:
        asked: whether a builder that draws a sample has cleaned what it draws from.
    """

    def __init__(self, decontamination: Decontamination, name: str) -> None:
        self.asked = False
        self._decontamination = decontamination
        self._name = name

    @property
    def counts(self) -> dict[str, Any]:
        """Counts so far (crosslign.corpora.decontamination)."""
        return self._decontamination.counts

    def __call__(self, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
        self.asked = True
        return self._kept(parts)

    def _kept(self, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
        yield from map(self._decontamination.clean, parts)
        if self.counts["before"] and not self.counts["after"]:
            why = str(self.counts["evaluations"])
            raise InputError("every example contains a sentence of an evaluation corpus", where=self._name, why=why)


class _Tally:
    """Counts of the examples that pass.

    Attributes:
        langs: sentences by language, hard negatives included.
        corpora: examples with a row of each corpus or view: what stands before the first colon of a row's id.
    """

    def __init__(self) -> None:
        self.langs: Counter[str] = Counter()
        self.corpora: Counter[str] = Counter()

    def counted(self, table: pa.Table) -> pa.Table:
        """Count a table and return it."""
        for column in ("a_lang", "b_lang", "c_lang", "langs"):
            if column in table.column_names:
                values = pc.list_flatten(table[column]) if column == "langs" else table[column]
                self.langs.update({row["values"]: row["counts"] for row in values.drop_null().value_counts().to_pylist()})
        rows = table["rows"].combine_chunks()
        names = pc.list_element(pc.split_pattern(pc.list_flatten(rows), ":", max_splits=1), 0)
        pairs = pa.table({"corpus": names, "example": pc.list_parent_indices(rows)}).group_by(["corpus", "example"]).aggregate([])
        self.corpora.update({row["values"]: row["counts"] for row in pairs["corpus"].value_counts().to_pylist()})
        return table
