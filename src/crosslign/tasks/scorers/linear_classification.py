"""Few-shot logistic regression on sentence vectors: MTOP domain, as MTEB does it (PROTOCOLS B6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crosslign.tasks import SCORERS
from crosslign.tasks.data import Items, TaskData, TextSet
from crosslign.tasks.measures import Bootstrap, Measure
from crosslign.tasks.scorers._labels import classes, few_shot_draws, sides, stops_counted
from crosslign.vectors import finite


@SCORERS.register
def linear_classification(
    task: TaskData, *, experiments: int = 10, samples_per_label: int = 8, max_iter: int = 100, resamples: int = 1000, seed: int = 42
) -> Iterator[Measure]:
    """Yield for each subset the accuracy on its test items, mean over experiments that each draw a few training items of every class.

    Training and test items are those of the text sets `train` and `test`, or the splits `train` and `test` of a single set. Vectors are
    used as they are, not normalised.

    Args:
        experiments: draws of training items.
        samples_per_label: training items of each class.
        max_iter: steps of the logistic regression (lbfgs, C = 1).
        resamples: bootstrap resamples of the test items for intervals; 0 for none.
        seed: of the draws, the regression and the bootstrap.
    """
    train, test, splits = sides(task)
    bootstrap = Bootstrap(task.name, resamples, seed)
    for subset in test.subsets:
        known, asked = train.items(subset, split=splits[0]), test.items(subset, split=splits[1])
        if not len(asked) or not len(known):
            yield Measure(subset, "accuracy", None, len(asked), reason=f"no {'test' if len(known) else 'training'} items")
            continue
        right = _shares_right(task.name, subset, (train, known), (test, asked), (experiments, samples_per_label, max_iter, seed))
        yield Measure(subset, "accuracy", float(right.mean()), len(right), resamples=bootstrap.mean(right))


def _shares_right(
    task: str, subset: str, train: tuple[TextSet, Items], test: tuple[TextSet, Items], settings: tuple[int, int, int, int]
) -> np.ndarray:
    """Return for each test item the share of experiments that classify it rightly: float64 [n]."""
    from sklearn.linear_model import LogisticRegression

    experiments, number, max_iter, seed = settings
    labels, gold = (classes(items, task, subset) for _, items in (train, test))
    vectors, asked = (finite(data.matrix, items.rows) for data, items in (train, test))
    right = np.zeros(len(gold))
    with stops_counted(task, subset):
        for drawn in few_shot_draws(labels, experiments, number, seed):
            model = LogisticRegression(max_iter=max_iter, random_state=seed).fit(vectors[drawn], labels[drawn])
            right += model.predict(asked) == gold
    return right / experiments
