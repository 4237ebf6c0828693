"""Which of several choices answers a question, from one logit a choice: XCOPA, COPA, Social IQa (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.options import Natural
from crosslign.tasks import SCORERS
from crosslign.tasks.data import TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure
from crosslign.tasks.scorers._labels import classes
from crosslign.tasks.scorers._logits import logits_of


@SCORERS.register(version=1, gives={"accuracy": ()}, subsets_apart=True)
def multiple_choice(task: TaskData, *, resamples: Natural = RESAMPLES, seed: Natural = 42) -> Iterator[Measure]:
    """Yield for each subset the share of questions whose right choice has the highest logit; of equal logits the first choice wins.

    Items of one `group` are the choices of one question, label 1 marks the right one. A system that gives all choices of every question
    the same logit has collapsed.

    Args:
        resamples: bootstrap resamples of the questions for intervals; 0 for none.
        seed: of the bootstrap.
    """
    data, bootstrap = task.only_corpus(), Bootstrap(task.name, resamples, seed)
    for subset in data.subsets:
        items, where = data.items(subset), f"task {task.name!r}, subset {subset!r}"
        logits = logits_of(data, items, where)
        if logits.shape[1] != 1:
            raise InputError(
                "a multiple choice needs one logit per choice", where=where, why=f"the matrix has {number_of(logits.shape[1], 'column')}"
            )
        questions, marked = _questions(items.groups, where), classes(items, task.name, subset) == 1
        right, spread = judge_choices(questions, logits[:, 0], marked, where)
        collapsed = "" if spread.any() else "equal logits for all choices of every question"
        drawn = bootstrap.over([items.clusters[at] for at in np.unique(questions, return_index=True)[1]]).mean(right)
        yield Measure(subset, "accuracy", float(right.mean()), len(right), resamples=drawn, collapsed=collapsed)


def _questions(names: Sequence[str | None], where: str) -> np.ndarray:
    """Return the number of each choice's question, counted as they come."""
    if None in names:
        raise InputError("a choice belongs to no question", where=where, why="its group is empty")
    number = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64)


def judge_choices(questions: np.ndarray, logits: np.ndarray, marked: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return for each question, in the order of the numbers, whether it is answered rightly and whether its logits differ: bool.

    Args:
        questions: int64 [n], number of each choice's question, from 0 without gaps.
        logits: [n].
        marked: bool [n], the right choices.
        where: for messages.

    Raises:
        InputError: a question has fewer than two choices, or not exactly one right one.
    """
    counts, rights = np.bincount(questions), np.bincount(questions, weights=marked)
    if (counts < 2).any() or (rights != 1).any():
        bad = int(np.flatnonzero((counts < 2) | (rights != 1))[0])
        raise InputError(
            f"question {bad + 1} has {counts[bad]} choices, {int(rights[bad])} of them marked right",
            where=where,
            why="a question needs two or more choices, exactly one of them right",
        )
    order = np.lexsort((np.arange(len(logits)), -logits, questions))
    ends = np.cumsum(counts)
    return marked[order[ends - counts]], logits[order[ends - counts]] != logits[order[ends - 1]]
