"""Subsets of an evaluation corpus that a dev evaluation needs for its selection."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.config.signatures import IMPLEMENTATIONS
from crosslign.corpora.evaluation import Evaluation
from crosslign.entries.catalog import Task
from crosslign.tasks.data import members

Subsets = frozenset[str]


def deciding_subsets(task: Task, subsets: Iterable[str], asked: Iterable[str | None]) -> Subsets:
    """Return the subsets that the asked scores of a task are made of, and one for its main score.

    Example: of Tatoeba's 112 languages the 36 of the average `tatoeba36`, where a training selects by that average alone.

    Args:
        task: its entry: `scorer`, `averages`, `main`.
        subsets: those of its evaluation corpora.
        asked: subset or named average of each score; None asks for all.

    Returns:
        All subsets, unless the scorer is registered with `subsets_apart`: no measure of a subset depends on another subset.
    """
    there = list(dict.fromkeys(subsets))
    names, averages = list(asked), task.get("averages", {})
    apart = IMPLEMENTATIONS["scorers"][task["scorer"]].facts.get("subsets_apart", False)
    if not apart or None in names:
        return frozenset(there)
    parts = {name: members(averages, name, there) if name in averages else [name] for name in {*names, task["main"]["subset"]} if name}
    needed = {subset for name in names if name for subset in parts[name]}
    if needed.isdisjoint(main := parts[task["main"]["subset"]]):
        needed.update(main[:1])
    return frozenset(needed.intersection(there))


def cut(evaluation: Evaluation, subsets: Subsets) -> Evaluation:
    """Return an evaluation corpus with the items, gold links and texts of some subsets alone, in their order."""
    wanted = pa.array(sorted(subsets), pa.string())
    items, gold = (table.filter(pc.is_in(table["subset"], value_set=wanted)) for table in (evaluation.items, evaluation.gold))
    texts = evaluation.texts.filter(pc.is_in(evaluation.texts["text_id"], value_set=pc.unique(items["text_id"])))
    return Evaluation(texts, items, gold)
