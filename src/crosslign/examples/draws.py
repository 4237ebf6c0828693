"""Samples of examples, drawn when evaluation sentences are out, in bounded memory (docs/papers/msimcse.md, docs/papers/moco_bert.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from crosslign.corpora.sampling import Lowest
from crosslign.corpora.staged import Staged
from crosslign.files.temporary import temporary_folder

PRIORITY = "priority"
STRATUM = "stratum"


def drawable(table: pa.Table, priorities: ArrayLike, strata: pa.ChunkedArray | None = None) -> pa.Table:
    """Return a table with what `bounded` draws by.

    Args:
        table: examples.
        priorities: one of each, uint64 of shape [examples] (crosslign.corpora.sampling.priorities).
        strata: what each is one of; all of one where it is not given.
    """
    named = pa.chunked_array([pa.repeat("", table.num_rows)]) if strata is None else strata
    return table.append_column(PRIORITY, pa.array(np.asarray(priorities, np.uint64))).append_column(STRATUM, named)


def bounded(parts: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """Yield, in their order, the `most` examples of least priority of each stratum; a smaller sample is part of a larger one.

    Examples below the bound so far wait in a temporary file (TMPDIR); memory is about 16 bytes for each that is wanted.

    Args:
        parts: `drawable` tables, from which evaluation sentences are out, so that a sample is as large as the corpus allows.
        most: bound on each stratum.
    """
    return map(_plain, _least(parts, most))


def smoothed(parts: Iterable[pa.Table], exponent: float, most: int | None = None) -> Iterator[pa.Table]:
    """Yield as many examples as there are; of a stratum with n of them a share p ∝ n^exponent, drawn by priority, in their order.

    Where a share asks for more than a stratum has, all of its examples come as often as they fit, and some of them once more; an
    example's copies follow each other.

    Args:
        parts: as for `bounded`.
        exponent: smoothing of the sizes: 1 keeps them, 0 makes all strata equal.
        most: bound on the different examples of each stratum.
    """
    sizes: Counter[str] = Counter()
    with temporary_folder("crosslign-smooth-") as folder:
        with Staged(Path(folder, "rows.arrow")) as staged:
            for part in parts if most is None else _least(parts, most):
                sizes.update(Counter(part[STRATUM].to_pylist()))
                staged.write(part)
        wanted = shares(sizes, exponent, sizes.total()) if sizes else {}
        once_more = {name: Lowest(count % sizes[name]) for name, count in wanted.items() if count % sizes[name]}
        for table in staged.read() if once_more else ():
            for name, rows in _strata(table):
                if name in once_more:
                    once_more[name].add(table[PRIORITY].to_numpy()[rows])
        bounds = {name: found.final() for name, found in once_more.items()}
        for table in staged.read():
            times = np.zeros(table.num_rows, np.int64)
            for name, rows in _strata(table):
                more = table[PRIORITY].to_numpy() <= bounds[name] if name in bounds else False
                times += rows * (wanted[name] // sizes[name] + np.asarray(more, np.int64))
            yield _plain(table.take(pa.array(np.repeat(np.arange(table.num_rows), times))))


def shares(sizes: Mapping[str, int], exponent: float, rows: int) -> dict[str, int]:
    """Return how many of `rows` each stratum gets: n^exponent in proportion, largest remainders rounded up."""
    weights = {name: size**exponent for name, size in sizes.items()}
    exact = {name: rows * weight / sum(weights.values()) for name, weight in weights.items()}
    counts = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (counts[name] - exact[name], name))
    for name in by_remainder[: rows - sum(counts.values())]:
        counts[name] += 1
    return counts


def _plain(table: pa.Table) -> pa.Table:
    return table.drop_columns([PRIORITY, STRATUM])


def _least(parts: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """Yield what `bounded` does, still drawable."""
    lowest: dict[str, Lowest] = {}
    with temporary_folder("crosslign-draw-") as folder:
        with Staged(Path(folder, "rows.arrow")) as staged:
            for part in parts:
                staged.write(part.filter(pa.array(_possible(part, lowest, most))))
        bounds = {name: found.final() for name, found in lowest.items()}
        for table in staged.read():
            values = table[PRIORITY].to_numpy()
            taken = np.zeros(table.num_rows, bool)
            for name, rows in _strata(table):
                taken |= rows & (values <= bounds[name])
            yield table.filter(pa.array(taken))


def _possible(part: pa.Table, lowest: dict[str, Lowest], most: int) -> NDArray[np.bool_]:
    """Return which examples may be drawn, and count their priorities in."""
    values, possible = part[PRIORITY].to_numpy(), np.zeros(part.num_rows, bool)
    for name, rows in _strata(part):
        own = lowest.setdefault(name, Lowest(most))
        found = rows & (values <= own.bound)
        own.add(values[found])
        possible |= found
    return possible


def _strata(part: pa.Table) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield each stratum and which examples are of it."""
    for name in sorted(part[STRATUM].unique().to_pylist()):
        yield name, pc.equal(part[STRATUM], name).to_numpy()
