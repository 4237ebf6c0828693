"""Class labels and balanced draws that several scorers need."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from crosslign.errors import InputError
from crosslign.tasks.data import EncodedCorpus, Items, TaskData


def classes(items: Items, task: str, subset: str) -> np.ndarray:
    """Return the class number of each item: int64 [n].

    Raises:
        InputError: an item has no class, or more than one, or one that is not a whole number.
    """
    for item, label in zip(items.ids, items.labels, strict=True):
        if label is None or len(label) != 1 or not label[0].is_integer():
            found = "no class" if not label else f"{len(label)} classes" if len(label) > 1 else f"the class {label[0]}"
            why = "each item needs one class, a whole number"
            raise InputError(f"item {item[1]!r} has {found}", where=f"task {task!r}, subset {subset!r}", why=why)
    return np.array([label[0] for label in items.labels if label], dtype=np.int64)


def sides(task: TaskData) -> tuple[EncodedCorpus, EncodedCorpus, tuple[str | None, str | None]]:
    """Return what teaches, what is asked, and the split of each: the evaluation corpora `train` and `test`, or two splits of a single set.

    Raises:
        InputError: the task has no evaluation corpus `test`.
    """
    train, test = task.corpus("train"), task.corpus("test")
    if test is None:
        raise InputError("no evaluation corpus of role test", where=f"tasks.{task.name}.texts", why=f"roles are {sorted(task.corpora)}")
    return (test, test, ("train", "test")) if train is None else (train, test, (None, None))


@contextmanager
def stops_counted(
    task: str, subset: str, said: str = "%d of the classifiers reached the protocol's last step without converging"
) -> Iterator[None]:
    """Say once how many fits did not converge, where scikit-learn warns in several lines of each.

    Protocols fix the number of steps, so that is not a fault; it may be one of the vectors.

    Args:
        task, subset: for the message.
        said: what it means, with the number of them.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield
    for other in (warning for warning in caught if not issubclass(warning.category, ConvergenceWarning)):
        warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    if stopped := sum(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        logging.getLogger(__name__).info(f"%s %s: {said}", task, subset, stopped)


def first_of_each(labels: np.ndarray, number: int) -> np.ndarray:
    """Return the positions of the first `number` items of each class, in the given order: int64."""
    order = np.argsort(labels, kind="stable")
    _, counts = np.unique(labels, return_counts=True)
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[rank < number])


def few_shot_draws(labels: np.ndarray, experiments: int, number: int, seed: int) -> Iterator[np.ndarray]:
    """Yield for each experiment the positions of `number` training items of each class (docs/protocols.md, as current MTEB draws them).

    One permutation runs through all experiments; each shuffles it with a fresh `RandomState(seed)`.
    """
    running = np.arange(len(labels))
    for _ in range(experiments):
        np.random.RandomState(seed).shuffle(running)
        yield running[first_of_each(labels[running], number)]
