"""Several classes an item, from logits: MultiEURLEX (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from crosslign.errors import InputError
from crosslign.options import Gt, Lt, Natural
from crosslign.tasks import SCORERS
from crosslign.tasks.data import Items, TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure
from crosslign.tasks.scorers._logits import check_classes, logits_of


@SCORERS.register(version=2, gives={"mean_r_precision": (), "exact_match": (), "top1_in_gold": (), "micro_f1": ()})
def multi_label(
    task: TaskData, *, threshold: Annotated[float, Gt(0), Lt(1)] = 0.5, resamples: Natural = RESAMPLES, seed: Natural = 42
) -> Iterator[Measure]:
    """Yield for each subset `micro_f1`, `mean_r_precision`, `exact_match` and `top1_in_gold`.

    A class is predicted where the sigmoid of its logit reaches the threshold. R-precision of an item with R gold classes is the share of
    gold classes among its R highest logits; of equal logits the lowest class comes first. `top1_in_gold`: the highest logit is that of a
    gold class.

    Args:
        threshold: of the sigmoid, between 0 and 1.
        resamples: bootstrap resamples of the items for intervals; 0 for none.
        seed: of the bootstrap.
    """
    data, bootstrap = task.only_corpus(), Bootstrap(task.name, resamples, seed)
    for subset in data.subsets:
        items, where = data.items(subset), f"task {task.name!r}, subset {subset!r}"
        logits = logits_of(data, items, where)
        gold = _gold(items, logits, where)
        predicted = logits >= np.log(threshold / (1 - threshold))
        outcomes = item_outcomes(logits, predicted, gold)
        constant = len(items) > 1 and (predicted == predicted[0]).all() and not (gold == gold[0]).all()
        collapsed = "the same classes for every item" if constant else ""
        drawn = bootstrap.over(items.clusters).means(np.stack(list(outcomes.values()), 1))
        means = np.stack([values.mean() for values in outcomes.values()])
        columns = list(outcomes)
        for metric in ("mean_r_precision", "exact_match", "top1_in_gold"):
            at = columns.index(metric)
            resampled = None if drawn is None else drawn[:, at]
            yield Measure(subset, metric, float(means[at]), len(items), resamples=resampled, collapsed=collapsed)
        f1 = None if drawn is None else micro_f1(drawn[:, :3])
        yield Measure(subset, "micro_f1", float(micro_f1(means[None, :3])[0]), len(items), resamples=f1, collapsed=collapsed)


def _gold(items: Items, logits: np.ndarray, where: str) -> np.ndarray:
    """Return bool [n, classes]."""
    gold = np.zeros(logits.shape, dtype=bool)
    for row, (item, label) in enumerate(zip(items.ids, items.labels, strict=True)):
        if not label or not all(number.is_integer() for number in label):
            why = "classes are whole numbers" if label else ""
            raise InputError(f"item {item[1]!r} has {f'the classes {label}' if label else 'no class'}", where=where, why=why)
        numbers = np.array(label, dtype=np.int64)
        check_classes(numbers, logits, where)
        gold[row, numbers] = True
    return gold


def item_outcomes(logits: np.ndarray, predicted: np.ndarray, gold: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the metrics are means of: float64 [n] each; the first three are numbers of gold, predicted and right classes.

    Args:
        logits: [n, classes].
        predicted, gold: bool [n, classes]; every row of gold has a class.
    """
    order = np.argsort(-logits, axis=1, kind="stable")
    hits = np.take_along_axis(gold, order, 1)
    size = gold.sum(1)
    found = np.take_along_axis(hits.cumsum(1), size[:, None] - 1, 1)[:, 0]
    return {
        "gold": size.astype(np.float64),
        "predicted": predicted.sum(1).astype(np.float64),
        "right": (gold & predicted).sum(1).astype(np.float64),
        "mean_r_precision": found / size,
        "exact_match": (gold == predicted).all(1).astype(np.float64),
        "top1_in_gold": hits[:, 0].astype(np.float64),
    }


def micro_f1(counts: np.ndarray) -> np.ndarray:
    """Return 2 right / (gold + predicted) from [r, 3] numbers of gold, predicted and right classes."""
    return np.asarray(2 * counts[:, 2] / (counts[:, 0] + counts[:, 1]))
