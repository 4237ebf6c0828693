"""Few-shot logistic regression on sentence vectors: MTOP domain, as MTEB does it (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crosslign.options import Natural, Positive
from crosslign.tasks import SCORERS
from crosslign.tasks.data import TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure
from crosslign.tasks.scorers._labels import classes, few_shot_draws, sides, stops_counted
from crosslign.vectors import finite


@SCORERS.register(version=2, gives={"accuracy": ()})
def linear_classification(
    task: TaskData,
    *,
    experiments: Positive = 10,
    samples_per_label: Positive = 8,
    max_iter: Positive = 100,
    resamples: Natural = RESAMPLES,
    seed: Natural = 42,
) -> Iterator[Measure]:
    """Yield for each subset the accuracy on its test items, mean over experiments that each draw a few training items of every class.

    Training and test items are those of the corpora `train` and `test`, or the splits `train` and `test` of a single set. Vectors are
    used as they are, not normalised.

    Args:
        experiments: draws of training items.
        samples_per_label: training items of each class.
        max_iter: steps of the logistic regression (lbfgs, C = 1).
        resamples: bootstrap resamples of the test items for intervals; 0 for none.
        seed: of the draws, the regression and the bootstrap.
    """
    from sklearn.linear_model import LogisticRegression

    train, test, splits = sides(task)
    bootstrap = Bootstrap(task.name, resamples, seed)
    for subset in test.subsets:
        known, asked = train.items(subset, split=splits[0]), test.items(subset, split=splits[1])
        taught, gold = classes(known, task.name, subset), classes(asked, task.name, subset)
        lacking = "no test items" if not len(gold) else "no training items" if not len(taught) else ""
        if not lacking and (taught == taught[0]).all():
            lacking = f"all training items have class {taught[0]}"
        if lacking:
            yield Measure(subset, "accuracy", None, len(gold), reason=lacking)
            continue
        vectors, questions = finite(train.matrix, known.rows), finite(test.matrix, asked.rows)
        right = np.zeros(len(gold))
        with stops_counted(task.name, subset):
            for drawn in few_shot_draws(taught, experiments, samples_per_label, seed):
                model = LogisticRegression(max_iter=max_iter, random_state=seed).fit(vectors[drawn], taught[drawn])
                right += model.predict(questions) == gold
        right /= experiments
        yield Measure(subset, "accuracy", float(right.mean()), len(right), resamples=bootstrap.over(asked.clusters).mean(right))
