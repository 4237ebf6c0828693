"""Evaluations: from embeddings, texts, items and gold to score records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from crosslign.registry import Registry
from crosslign.tasks.data import TaskData
from crosslign.tasks.measures import Measure
from crosslign.tasks.records import Record


class Scorer(Protocol):
    """How embeddings become metrics; `options` are the keys of the task's entry that belong to no one else."""

    def __call__(self, task: TaskData, **options: Any) -> Iterable[Measure]:
        """Return every metric of every subset; named averages and intervals are made from them by `crosslign.tasks.score`."""


SCORERS: Registry[Scorer] = Registry("scorer", "crosslign.tasks.scorers")

__all__ = ["SCORERS", "Measure", "Record", "Scorer", "TaskData"]
