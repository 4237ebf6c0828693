"""The filters of a corpus, run over its batches in order, with counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora.columns import SIDES
from crosslign.corpora.filters import FILTERS, Filter, PairRule, Setting, Sides, TextMap
from crosslign.corpora.kept_shards import Counts, Shards, joined, read_of
from crosslign.corpora.sampling import Draw
from crosslign.corpora.staged import Staged
from crosslign.workers import Work, Workers

PIVOT = "en"
PIVOT_COLUMNS = ("pivot_lang", "pivot_text")
"""Columns that rows of a multiway corpus carry while they are filtered: the sentence that rules of two sides compare with."""

WORTH_WORKERS = 32
"""Batches from which on worker processes earn more time than their start takes."""


class Pipeline:
    """The filters of one corpus.

    A multiway corpus is read twice where it needs it: its pivot's sentences (English, else the first language;
    of several versions the lowest) are gathered first, for the rules that compare two sides.

    Args:
        name: id of the corpus.
        kind: kind of its rows.
        langs: its languages.
        steps: `[{name: options}, …]` in the order of the catalog.
        references: rows of other corpora that filters name, by id, and models by their source.
        threads: processes that filters may use; the result is the same.
        forgetful: leave out the filters that remember rows, as a worker process does.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        langs: Sequence[str],
        steps: Sequence[Mapping[str, Any]],
        references: Mapping[str, Path],
        *,
        threads: int = 1,
        forgetful: bool = False,
    ) -> None:
        self.name, self.kind = name, kind
        self.read = 0
        self.read_bytes = 0
        self.counts: list[dict[str, Any]] = []
        self._steps: list[Filter | TextMap] = []
        self._pivot_lang = PIVOT if PIVOT in langs or not langs else langs[0]
        self._pivots: dict[str, tuple[str, str]] = {}
        self._threads = threads
        self._draw: Draw | None = None
        self._cut = 0
        self._first: int | None = None
        steps = [{rule: _with_model(options or {}, references) for rule, options in step.items()} for step in steps]
        self._task = {"name": name, "kind": kind, "langs": list(langs), "steps": steps}
        setting = Setting(langs, references, name)
        for step in steps:
            ((rule, options),) = step.items()
            found = FILTERS.get(rule, where=f"{name}: filters")
            skip = forgetful and issubclass(found, Filter) and found.remembers
            self._steps.append(Filter(setting) if skip else found(setting, **options))
            self.counts.append({"filter": rule, "before": 0, "after": 0})

    def draw(self, size: int, seed: int) -> Draw:
        """Have a sample drawn while rows are filtered, by single rows; return it, to be given what `apply` yields.

        Filters that look at a row alone then see only rows that can still be drawn; so does the one of exact duplicates, as rows that
        count as equal are drawn or left together. Changes of texts, and filters that depend on other rows, see all rows.
        """
        whole = [isinstance(step, TextMap) or (step.remembers and not step.draws_first) for step in self._steps]
        self._cut = max((n + 1 for n, all_rows in enumerate(whole) if all_rows), default=0)
        self._first = next((n for n in range(self._cut, len(whole)) if isinstance(s := self._steps[n], Filter) and s.draws_first), None)
        step = None if self._first is None else self._steps[self._first]
        if isinstance(step, Filter):
            step.drawn = True
        self._draw = Draw(size, seed, getattr(step, "keys", None))
        return self._draw

    def settle(self) -> dict[str, Any]:
        """Return what the filters dropped, once the sample is drawn: `filters`, and `seen_whole`, how many of them saw all rows."""
        if self._draw and self._first is not None:
            self.counts[self._first]["after"] -= self._draw.repeats
        for count, step in zip(self.counts, self._steps, strict=True):
            if isinstance(step, Filter) and (learned := step.learned()):
                count["learned"] = learned
        some = self._draw is not None and self._cut < len(self._steps)
        return {"filters": self.counts, **({"seen_whole": self._cut} if some else {})}

    @property
    def needs_survey(self) -> bool:
        """Whether all batches must be surveyed before the first is filtered."""
        pivoted = self.kind == "multiway" and any(isinstance(step, PairRule) for step in self._steps)
        return pivoted or any(isinstance(step, Filter) and step.needs_survey for step in self._steps)

    def survey(self, batch: pa.Table) -> None:
        """Gather pivots and let filters look ahead."""
        if self.kind == "multiway":
            rows = zip(*(batch[column].to_pylist() for column in ("group", "lang", "text", "version")), strict=True)
            for group, lang, text, version in rows:
                if lang == self._pivot_lang and (version or "", text) < self._pivots.get(group, ("\U0010ffff", "")):
                    self._pivots[group] = (version or "", text)
        sides = self._sides(batch)
        for step in self._steps:
            if isinstance(step, Filter) and step.needs_survey:
                step.survey(sides)

    @property
    def parts_alone(self) -> bool:
        """Whether the filters' result for one part of a source depends on no other part: a sample is drawn, which handles equal rows."""
        first = None if self._first is None else self._steps[self._first]
        return self._draw is not None and not any(isinstance(s, Filter) and s.remembers and s is not first for s in self._steps)

    def apply(self, batches: Iterable[pa.Table], shards: Shards | None = None) -> Iterator[pa.Table]:
        """Yield what the filters leave of each batch, and count; what `shards` has is not filtered again (`parts_alone`)."""
        # What follows the cut sees few rows.
        worth = self._threads > 1 and any(apart and not (self._draw and span.start >= self._cut) for apart, span in self._spans())
        if worth:
            batches, worth = _peeked(batches)
        with Workers(self._threads, filter_work, self._task, self.name) if worth else nullcontext() as workers:
            if shards is None:
                yield from self._filtered(map(self._received, batches), workers)
            else:
                for number, part in shards.parts(batches):
                    if shards.own(number):
                        yield from self._shard(shards, number, map(self._received, part), workers)
                    else:
                        deque(part, 0)

    def _shard(self, shards: Shards, number: int, part: Iterable[pa.Table], workers: Workers | None) -> Iterator[pa.Table]:
        """Yield what the filters leave of a shard: as it was kept, else as they leave it now."""
        if kept := shards.kept(number):
            deque(part, 0)  # it is counted as read
            yield from self._again(*kept)
            return
        before = [dict(count) for count in self.counts]
        yield from shards.keep(number, self._filtered(part, workers))
        pairs = zip(self.counts, before, strict=True)
        shards.done(number, [{key: n - was.get(key, 0) for key, n in now.items() if key != "filter"} for now, was in pairs])

    def _again(self, kept: Staged, counts: Counts) -> Iterator[pa.Table]:
        self._add(counts, range(len(self._steps)))
        yield from kept.read()

    def rejoined(self, folders: Sequence[Path]) -> Iterator[pa.Table]:
        """Yield what the filters left of each shard in the jobs that shared them, in the source's order, and count as one job does."""
        for read in map(read_of, folders):
            self.read += read["read"]
            self.read_bytes += read["read_bytes"]
        for kept, counts in joined(folders):
            yield from self._again(kept, counts)

    def _filtered(self, found: Iterable[pa.Table], workers: Workers | None) -> Iterator[pa.Table]:
        for apart, span in self._spans():
            found = self._drawable(found, span)
            if not apart:
                found = self._remembering(found, span.start)
            else:
                found = self._apart(workers, found, span) if workers else self._here(found, span)
        return map(self._returned, found)

    def _drawable(self, batches: Iterable[pa.Table], span: range) -> Iterable[pa.Table]:
        """Leave out the rows that cannot be drawn any more, before the first step that may do without them."""
        return map(self._draw.drawable, batches) if self._draw and span.start == self._cut else batches

    def _spans(self) -> list[tuple[bool, range]]:
        """Return the steps in runs that worker processes can take over; each that remembers other rows stands alone."""
        apart = [not (isinstance(step, Filter) and step.remembers) for step in self._steps]
        cut = self._cut if self._draw else 0
        starts = [n for n in range(len(apart)) if n in (0, cut) or not (apart[n] and apart[n - 1])]
        return [(apart[start], range(start, end)) for start, end in zip(starts, [*starts, len(apart)][1:], strict=bool(starts))]

    def _received(self, batch: pa.Table) -> pa.Table:
        self.read += batch.num_rows
        self.read_bytes += sum(pc.sum(pc.binary_length(batch[text])).as_py() or 0 for _, text in SIDES[self.kind])
        if self.kind != "multiway":
            return batch
        rows = zip(batch["group"].to_pylist(), batch["lang"].to_pylist(), strict=True)
        pivots = [self._pivots.get(group) if lang != self._pivot_lang else None for group, lang in rows]
        columns = ([pivot and self._pivot_lang for pivot in pivots], [pivot and pivot[1] for pivot in pivots])
        for name, column in zip(PIVOT_COLUMNS, columns, strict=True):
            batch = batch.append_column(name, pa.array(column, pa.string()))
        return batch

    def _returned(self, batch: pa.Table) -> pa.Table:
        return batch.drop_columns(list(PIVOT_COLUMNS)) if self.kind == "multiway" else batch

    def _here(self, batches: Iterable[pa.Table], span: range) -> Iterator[pa.Table]:
        for batch in batches:
            found, counts = self.run(batch, span)
            self._add(counts, span)
            yield found

    def _remembering(self, batches: Iterable[pa.Table], number: int) -> Iterator[pa.Table]:
        step = self._steps[number]
        assert isinstance(step, Filter)
        for batch, left in step.keep_of_all(batches, self._sides):
            self._add([{"before": batch.num_rows, "after": int(left.sum())}], range(number, number + 1))
            yield batch.filter(pa.array(left))

    def _apart(self, workers: Workers, batches: Iterable[pa.Table], span: range) -> Iterator[pa.Table]:
        for found, counts in workers.map(batches, [span.start, span.stop]):
            self._add(counts, span)
            yield found

    def _add(self, counts: Sequence[Mapping[str, int]], span: range) -> None:
        for step, count in zip(span, counts, strict=True):
            for key, number in count.items():
                self.counts[step][key] = self.counts[step].get(key, 0) + number

    def run(self, batch: pa.Table, span: range) -> tuple[pa.Table, list[dict[str, int]]]:
        """Run the steps of a span over one batch.

        Args:
            batch: rows, with their pivots where there are any.
            span: numbers of the steps.

        Returns:
            What they leave, and for each step before, after, and where it changes texts changed.
        """
        sides, left = self._sides(batch), np.ones(batch.num_rows, bool)
        counts: list[dict[str, int]] = []
        for step in (self._steps[number] for number in span):
            if isinstance(step, TextMap) or not step.vectorised:
                batch, sides, left = batch.filter(pa.array(left)), sides.select(left), np.ones(int(left.sum()), bool)
            count = {"before": int(left.sum())}
            if isinstance(step, TextMap):
                batch, count["changed"] = self._mapped(step, batch)
                sides, left = self._sides(batch), np.ones(batch.num_rows, bool)
            elif len(sides):
                left &= step.keep(sides)
            counts.append({**count, "after": int(left.sum())})
        return batch.filter(pa.array(left)), counts

    def _mapped(self, step: TextMap, batch: pa.Table) -> tuple[pa.Table, int]:
        """Return the batch with changed texts, without rows that lost theirs; and how many rows changed."""
        differs, there = np.zeros(batch.num_rows, bool), np.ones(batch.num_rows, bool)
        for lang, text in SIDES[self.kind]:
            old = batch[text].to_pylist()
            new = [None if t is None else step.change(t, code) for t, code in zip(old, batch[lang].to_pylist(), strict=True)]
            differs |= np.fromiter((a != b for a, b in zip(old, new, strict=True)), bool, len(old))
            there &= np.fromiter((t != "" for t in new), bool, len(new))
            batch = batch.set_column(batch.column_names.index(text), text, pa.array(new, pa.string()))
        return batch.filter(pa.array(there)), int(differs.sum())

    def _sides(self, batch: pa.Table) -> Sides:
        langs, texts = (batch[column].to_pylist() for column in SIDES[self.kind][0])
        groups: list[str] = []
        if "group" in batch.column_names and batch["group"].null_count < batch.num_rows:
            groups = [group or row for group, row in zip(batch["group"].to_pylist(), batch["id"].to_pylist(), strict=True)]
        if self.kind == "multiway":
            pivot_langs, pivots = (_listed(batch, column) for column in PIVOT_COLUMNS)
            return Sides(texts, langs, pivots, pivot_langs, right_is_pivot=True, groups=groups)
        if len(SIDES[self.kind]) == 1:
            return Sides(texts, langs, [None] * len(texts), [None] * len(texts), groups=groups)
        other_langs, others = (batch[column].to_pylist() for column in SIDES[self.kind][1])
        return Sides(texts, langs, others, other_langs, groups=groups)


def _with_model(options: Mapping[str, Any], references: Mapping[str, Path]) -> dict[str, Any]:
    """Return a filter's options with the path of a model that is named by its source."""
    model = str(options.get("model"))
    return {**options, "model": str(references[model])} if model in references else dict(options)


def _peeked(batches: Iterable[pa.Table]) -> tuple[Iterator[pa.Table], bool]:
    """Return the batches, and whether they are enough to keep worker processes busy."""
    source = iter(batches)
    first = list(islice(source, WORTH_WORKERS))
    worth = len(first) == WORTH_WORKERS
    return chain(_released(first), source), worth


def _released(batches: list[pa.Table]) -> Iterator[pa.Table]:
    """Yield batches and let go of each, so that the first ones do not stay in memory to the end."""
    batches.reverse()
    while batches:
        yield batches.pop()


def _listed(batch: pa.Table, column: str) -> list[Any]:
    return list(batch[column].to_pylist()) if column in batch.column_names else [None] * batch.num_rows


def filter_work(**task: Any) -> Work:
    """Return the work of a worker that filters; a note is the span of steps, its answer's their counts."""
    pipeline = Pipeline(**task, references={}, forgetful=True)
    return lambda table, span: pipeline.run(table, range(*span))
