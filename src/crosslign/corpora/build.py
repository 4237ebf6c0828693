"""Corpora: read, filtered, sampled, written."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.console import number_of
from crosslign.corpora import READERS, dedup
from crosslign.corpora.columns import SIDES
from crosslign.corpora.dedup import KeySet, digests
from crosslign.corpora.kept_shards import Shards, read_of
from crosslign.corpora.pipeline import Pipeline
from crosslign.corpora.readers._left_out import counting
from crosslign.corpora.sampling import Draw, priorities
from crosslign.entries.catalog import Corpus
from crosslign.errors import InputError
from crosslign.files import iter_rows, write_batches
from crosslign.files.rows import SCHEMAS
from crosslign.files.temporary import temporary_folder

log = logging.getLogger(__name__)
SEED = 42


def build_corpus(
    name: str,
    entry: Corpus,
    files: Mapping[str, Path],
    references: Mapping[str, Path],
    out: Path,
    limit: int | None = None,
    *,
    threads: int = 1,
    shards: Shards | None = None,
    parts: Sequence[Path] = (),
) -> dict[str, Any]:
    """Write the rows of one corpus.

    Args:
        name: id of the corpus.
        entry: its entry in the catalog: kind, reader, options, langs, filters, seed, sample (a bound as `limit`).
        files: source files by name.
        references: rows of the corpora that filters name, by id.
        out: Parquet file to write, in the columns of the kind.
        limit: upper bound on the rows; on the groups of a multiway corpus. Labelled rows of one group stay together.
            A sample keeps source order, and a smaller one is part of a larger one of the same `seed` (default 42). Where duplicates are
            dropped it is drawn by what counts as equal, so that filters need not see rows that cannot be drawn.
        threads: processes that filters may use, or a reader that takes `threads`; the rows are the same.
        shards: what a killed job left of a sample that is drawn by single rows, and where this one keeps it; removed at the end.
        parts: folders of `filter_shards` for each of the jobs that shared the source, in order; then it is not read again.

    Returns:
        Counts: `read` and `read_bytes` (rows as the reader gives them, and the UTF-8 bytes of their texts), `left_out` (records of the
        files that the reader made no row of, by reason, where there are any), `filters` (name, before, after, changed), `seen_whole` (how
        many of them saw all rows, where a sample spared the others those that could not be drawn), `rows`, `per_language` (sentences),
        `rows_per_language` (by the first side's), and where there are any `groups` and `labels` (rows and groups by name of the class).

    Raises:
        InputError: a reader's or filter's own; no row is left; a row lacks its id, or has that of another.
    """
    pa.set_memory_pool(pa.system_memory_pool())  # it gives freed batches back at once; the default one keeps some 40 MB of them
    kind = entry["kind"]
    read, spare = _reading(name, entry, files, threads)
    pipeline = Pipeline(name, kind, entry.get("langs", ()), entry.get("filters", ()), references, threads=spare)
    for batch in read() if pipeline.needs_survey else ():
        pipeline.survey(batch)
    counts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=_folder(out)) as folder, counting() as left_out:
        left_out.update(read_of(parts[0])["left_out"] if parts else {})  # every job reads the whole source, and filters its share
        chosen = _sampled(pipeline, read, Path(folder, "filtered.parquet"), entry, limit, shards, parts)
        counted = _counted(chosen, kind, counts, entry.get("labels", ()))
        written = write_batches(out, counted, kind, check=partial(_check_ids, name=name))
    if shards:
        shards.remove()
    result = {"read": pipeline.read, "read_bytes": pipeline.read_bytes, **pipeline.settle(), "rows": written, **counts}
    if left_out:
        result["left_out"] = dict(sorted(left_out.items()))
    if not written:
        out.unlink()
        raise _nothing_left(name, result)
    log.info("%s: %s rows read, %s kept%s", name, f"{pipeline.read:,}", f"{written:,}", _said(left_out))
    return result


def filter_shards(
    name: str,
    entry: Corpus,
    files: Mapping[str, Path],
    references: Mapping[str, Path],
    out: Path,
    limit: int | None,
    shards: Shards,
    *,
    threads: int = 1,
) -> dict[str, Any]:
    """Filter the shards of a source that are one job's, for `build_corpus` to draw the sample from those of all jobs.

    Args:
        name, entry, files, references, limit, threads: as `build_corpus` takes them.
        out: folder of the shards, made at the end.
        shards: which they are, and what a killed job left of them.

    Returns:
        Counts: `read` and `read_bytes` of these shards, `left_out` of the whole source, `shards`, how many there are in all, `filters`.

    Raises:
        InputError: a reader's or filter's own; what the filters leave of one row depends on others, or no sample is drawn.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    read, spare = _reading(name, entry, files, threads)
    pipeline = Pipeline(name, entry["kind"], entry.get("langs", ()), entry.get("filters", ()), references, threads=spare)
    draw = _draw(pipeline, entry, limit)
    if draw is None or pipeline.needs_survey or not pipeline.parts_alone:
        why = "it keeps all its rows, or one of its filters compares rows with each other"
        raise InputError("this corpus cannot be shared among jobs", where=name, why=why, do="Remove it from `corpus_shards`")
    with counting() as left_out:
        for table in pipeline.apply(read(), shards):
            draw.add(table)  # for its bound: rows above it are not filtered
    found = {"read": pipeline.read, "read_bytes": pipeline.read_bytes, "left_out": dict(sorted(left_out.items()))}
    shards.hand_over(out, found)
    return {**found, "shards": shards.total, "filters": pipeline.counts}


def _draw(pipeline: Pipeline, entry: Corpus, limit: int | None) -> Draw | None:
    """Have a sample drawn while rows are filtered, where it is one of single rows."""
    bound = _rows_wanted(entry, limit)
    return None if bound is None or "group" in SCHEMAS[entry["kind"]].names else pipeline.draw(bound, entry.get("seed", SEED))


def _rows_wanted(entry: Corpus, limit: int | None) -> int | None:
    return min((bound for bound in (entry.get("sample"), limit) if bound is not None), default=None)


def _reading(name: str, entry: Corpus, files: Mapping[str, Path], threads: int) -> tuple[Callable[[], Iterator[pa.Table]], int]:
    """Return what reads a corpus, from its first row each time, and how many processes its filters may use."""
    reader = READERS.get(entry["reader"], where=name)
    apart = {"threads": threads} if "threads" in signature(reader).parameters else {}  # then filters take none of them
    return partial(reader, files, name, entry.get("langs", ()), **entry.get("options", {}), **apart), 1 if apart else threads


def _folder(out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    return out.parent


def _nothing_left(name: str, result: Mapping[str, Any]) -> InputError:
    steps = ", ".join(f"{step['filter']} {step['before']:,} → {step['after']:,}" for step in result["filters"])
    return InputError(
        "no row is left",
        where=name,
        why=f"{number_of(result['read'], 'row')} read; {steps or 'no filters'}{_said(result.get('left_out', {}))}",
        do="Loosen the filters, or check that the files and languages are right for the reader",
    )


def _said(left_out: Mapping[str, int]) -> str:
    return "".join(f"; {count:,} left out as {reason}" for reason, count in sorted(left_out.items()))


def _checked(batches: Iterator[pa.Table], kind: str, name: str) -> Iterator[pa.Table]:
    """Pass tables on whose ids are there, and whose first side is never empty."""
    for batch in batches:
        if batch["id"].null_count:
            raise InputError("a row has no id", where=name)
        for lang, text in SIDES[kind]:
            empty = pc.and_kleene(pc.is_valid(batch[lang]), pc.equal(pc.fill_null(batch[text], ""), ""))
            if pc.any(empty).as_py():
                row = batch["id"][empty.to_pylist().index(True)].as_py()
                raise InputError(f"row {row!r} has an empty {text}", where=name)
        yield batch


def _ascend(path: Path) -> bool:
    """Return whether each row's id is longer than the one before it, or as long and greater: then no two are equal."""
    before = pa.array([], pa.string())
    for batch in iter_rows(path, ["id"]):
        ids = pa.concat_arrays([before, *batch["id"].chunks])
        longer = np.diff(pc.binary_length(ids))
        if ((longer < 0) | ((longer == 0) & ~np.asarray(pc.greater(ids[1:], ids[:-1])))).any():
            return False
        before = ids[-1:]
    return True


def _check_ids(path: Path, name: str) -> None:
    """Refuse rows whose ids are not unique; those of lines ascend, of others what is beyond memory is compared at the end.

    Raises:
        InputError: names an id, where it is found in memory.
    """
    if _ascend(path):
        return
    seen, advice = KeySet(), "Give the reader's files distinct names"
    with temporary_folder("crosslign-ids-") as folder:
        later = dedup.KeysOnDisk(Path(folder))
        for batch in iter_rows(path, ["id"]):
            keys = digests(batch["id"])
            if len(seen) < dedup.IN_MEMORY:
                new = seen.insert(keys)
                for part in seen.parts() if len(seen) >= dedup.IN_MEMORY else ():
                    later.add(part, known=True)
            else:
                new = np.ones(len(keys), bool)
                later.add(keys)
            if not new.all():
                raise InputError(f"row id {batch['id'][int(np.argmin(new))].as_py()!r} is not unique", where=name, do=advice)
        if not later.new().all():
            raise InputError(f"row ids after the first {len(seen):,} are not unique", where=name, do=advice)


def _counted(batches: Iterator[pa.Table], kind: str, counts: dict[str, Any], labels: Sequence[str]) -> Iterator[pa.Table]:
    """Pass tables on and fill `counts` with sentences by language, groups, and rows and groups of each class."""
    langs: Counter[str] = Counter()
    first: Counter[str] = Counter()
    groups = KeySet()
    sizes = dict.fromkeys(labels, 0)
    members = {label: KeySet() for label in labels}
    for batch in batches:
        for side, (lang, _) in enumerate(SIDES[kind]):
            found = {row["values"]: row["counts"] for row in batch[lang].drop_null().value_counts().to_pylist()}
            langs.update(found)
            first.update(found if side == 0 else {})
        if "group" in batch.column_names:
            groups.insert(_group_keys(batch))
        for number, label in enumerate(labels):
            of_class = batch.filter(pc.equal(pc.list_element(batch["label"], 0), float(number)))
            sizes[label] += of_class.num_rows
            if "group" in of_class.column_names:
                members[label].insert(_group_keys(of_class))
        yield batch
    counts["per_language"] = dict(sorted(langs.items()))
    counts["rows_per_language"] = dict(sorted(first.items()))
    if len(groups):
        counts["groups"] = len(groups)
    if labels:
        counts["labels"] = {"rows": sizes, "groups": {label: len(found) for label, found in members.items()}}


def _group_keys(batch: pa.Table) -> NDArray[np.bytes_]:
    return digests(batch["group"].drop_null().unique())


def _sampled(
    pipeline: Pipeline,
    read: Callable[[], Iterator[pa.Table]],
    staged: Path,
    entry: Corpus,
    limit: int | None,
    shards: Shards | None,
    parts: Sequence[Path],
) -> Iterator[pa.Table]:
    """Yield the rows that the filters leave, in their order: all, or a sample of single rows or of whole groups."""
    kind, seed, bound = entry["kind"], entry.get("seed", SEED), _rows_wanted(entry, limit)
    draw = _draw(pipeline, entry, limit)
    found = pipeline.rejoined(parts) if parts else pipeline.apply(read(), shards if pipeline.parts_alone else None)
    rows = _checked(found, kind, pipeline.name)
    if draw is not None:
        for table in rows:
            draw.add(table)
        yield from draw.drawn()
    elif bound is None:
        yield from rows
    else:
        write_batches(staged, rows, kind)
        yield from _sampled_groups(staged, kind, bound, seed)


def _sampled_groups(path: Path, kind: str, limit: int, seed: int) -> Iterator[pa.Table]:
    """Yield the rows of the groups of least priority, whole; memory is 8 bytes a row, some 40 while they are sorted."""
    parts = [priorities(_units(batch), seed) for batch in iter_rows(path, ["id", "group"])]
    values = np.concatenate([np.empty(0, np.uint64), *parts])
    bound, start = _bound(values, limit, by_rows=kind != "multiway"), 0
    for batch in iter_rows(path):
        yield batch.filter(pa.array(values[start : start + batch.num_rows] <= bound))
        start += batch.num_rows


def _units(batch: pa.Table) -> list[str]:
    """Return the group of each row, or its id where it stands alone."""
    return [group or row for group, row in zip(batch["group"].to_pylist(), batch["id"].to_pylist(), strict=True)]


def _bound(values: NDArray[np.uint64], limit: int, *, by_rows: bool) -> np.uint64:
    """Return the greatest priority of the units that are chosen, whole.

    Args:
        values: priority of each row's group, or of the row where it stands alone.
        limit: bound on the units; with `by_rows`, on their rows (but one unit is always taken).
        by_rows: what the limit counts.
    """
    units, sizes = np.unique(values, return_counts=True)
    taken = np.cumsum(sizes) <= limit if by_rows else np.arange(len(units)) < limit
    return np.uint64(units[max(1, int(taken.sum())) - 1] if len(units) else 0)
