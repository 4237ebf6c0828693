"""The filters of a corpus, run over its batches in order, with counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crosslign.corpora.columns import SIDES
from crosslign.corpora.filters import FILTERS, Filter, PairRule, Setting, Sides, TextMap

PIVOT = "en"


class Pipeline:
    """The filters of one corpus.

    A multiway corpus is read twice where it needs it: its pivot's sentences (English, else the first language;
    of several versions the lowest) are gathered first, for the rules that compare two sides.

    Args:
        name: id of the corpus.
        kind: kind of its rows.
        langs: its languages.
        steps: `[{name: options}, …]` in the order of the catalog.
        references: rows of other corpora that filters name, by id.
    """

    def __init__(
        self, name: str, kind: str, langs: Sequence[str], steps: Sequence[Mapping[str, Any]], references: Mapping[str, Path]
    ) -> None:
        self.kind = kind
        self.read = 0
        self.counts: list[dict[str, Any]] = []
        self._steps: list[Filter | TextMap] = []
        self._pivot_lang = PIVOT if PIVOT in langs or not langs else langs[0]
        self._pivots: dict[str, tuple[str, str]] = {}
        setting = Setting(langs, references, name)
        for step in steps:
            ((rule, options),) = step.items()
            self._steps.append(FILTERS.get(rule, where=f"{name}: filters")(setting, **(options or {})))
            self.counts.append({"filter": rule, "before": 0, "after": 0})

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

    def apply(self, batches: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield what the filters leave of each batch, and count."""
        for batch in batches:
            self.read += batch.num_rows
            yield self._filtered(batch)

    def _filtered(self, batch: pa.Table) -> pa.Table:
        sides, left = self._sides(batch), np.ones(batch.num_rows, bool)
        for step, count in zip(self._steps, self.counts, strict=True):
            if isinstance(step, TextMap) or not step.vectorised:
                batch, sides, left = batch.filter(pa.array(left)), sides.select(left), np.ones(int(left.sum()), bool)
            count["before"] += int(left.sum())
            if isinstance(step, TextMap):
                batch, changed = self._mapped(step, batch)
                sides, left = self._sides(batch), np.ones(batch.num_rows, bool)
                count["changed"] = count.get("changed", 0) + changed
            elif len(sides):
                left &= step.keep(sides)
            count["after"] += int(left.sum())
        return batch.filter(pa.array(left))

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
            pivots = [self._pivots.get(group) if lang != self._pivot_lang else None for group, lang in zip(groups, langs, strict=True)]
            others = [pivot and pivot[1] for pivot in pivots]
            return Sides(texts, langs, others, [pivot and self._pivot_lang for pivot in pivots], right_is_pivot=True, groups=groups)
        if len(SIDES[self.kind]) == 1:
            return Sides(texts, langs, [None] * len(texts), [None] * len(texts), groups=groups)
        other_langs, others = (batch[column].to_pylist() for column in SIDES[self.kind][1])
        return Sides(texts, langs, others, other_langs, groups=groups)
