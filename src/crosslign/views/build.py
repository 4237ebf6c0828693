"""Views: augmented copies of corpora, streamed from file to file."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from crosslign.console import number_of
from crosslign.corpora.columns import SIDES, kind_of
from crosslign.errors import InputError
from crosslign.files import iter_rows, write_batches
from crosslign.files.rows import SCHEMAS
from crosslign.registry import options_of
from crosslign.views import VIEWS, Setting, ViewBuilder

log = logging.getLogger(__name__)
SEED = 42


def view_schema(kind: str) -> pa.Schema:
    """Return the columns of a view of a kind of corpus: those of the corpus, plus of, kind, n and replaced."""
    added = [("of", pa.string()), ("kind", pa.string()), ("n", pa.int16()), ("replaced", pa.float32())]
    return pa.schema([*SCHEMAS[kind], *(pa.field(name, kind) for name, kind in added)])


def build_view(
    name: str,
    entry: Mapping[str, Any],
    corpora: Mapping[str, Path],
    out: Path,
    translations: Path | None = None,
    models: Mapping[str, Path] | None = None,
) -> dict[str, Any]:
    """Write one view.

    Args:
        name: id of the view.
        entry: its entry: builder, from, seed, and the builder's options.
        corpora: rows of the corpora in `from` and of those that options name, by id.
        out: Parquet file to write: the columns of the corpora, plus `of` (id of the original), `kind`, `n` (which of
            a row's views, from 1) and `replaced` (share of words that changed hands, where words did).
        translations: folder in which translations are kept from run to run.
        models: folders of the hub models that its translator needs, by their names.

    Returns:
        Counts: `read`, `rows`, `per_language`, and the builder's own.

    Raises:
        InputError: the corpora are not of one kind; no row could be augmented.
    """
    setting = Setting(name, corpora, entry.get("seed", SEED), translations, models or {})
    builder = VIEWS.get(entry["builder"], where=name)(setting, **options_of("views", entry))  # type: ignore[call-arg]
    kind = _common_kind(name, [corpora[corpus] for corpus in entry["from"]])
    counts: dict[str, Any] = {"read": 0}
    batches = _augmented(builder, kind, [corpora[corpus] for corpus in entry["from"]], counts)
    counts["rows"] = write_batches(out, batches, view_schema(kind))
    if not counts["rows"]:
        out.unlink()
        raise InputError(
            "the view is empty", where=name, why=f"none of {number_of(counts['read'], 'row')} could be augmented", do="Check its languages"
        )
    log.info("%s: %s copies of %s rows", name, f"{counts['rows']:,}", f"{counts['read']:,}")
    return {**counts, **builder.counts()}


def _common_kind(name: str, paths: list[Path]) -> str:
    kinds = sorted({kind_of(batch.column_names) for path in paths for batch in _first(path)})
    if len(kinds) != 1:
        raise InputError("a view's corpora must have the same kind", where=name, why=f"found {kinds}")
    return kinds[0]


def _first(path: Path) -> Iterator[pa.Table]:
    for batch in iter_rows(path):
        yield batch
        return


def _augmented(builder: ViewBuilder, kind: str, paths: list[Path], counts: dict[str, Any]) -> Iterator[pa.Table]:
    langs: Counter[str] = Counter()
    for path in paths:
        for batch in iter_rows(path):
            copies = builder.augment(batch, SIDES[kind])
            counts["read"] += batch.num_rows
            langs.update(copies[SIDES[kind][0][0]].to_pylist())
            yield copies
    counts["per_language"] = dict(sorted(langs.items()))
