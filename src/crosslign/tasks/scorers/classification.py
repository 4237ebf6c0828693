"""One class an item, from logits: XNLI, PAWS-X, AmericasNLI, MultiARC (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np

from crosslign.options import MinLen, Natural, Schema
from crosslign.tasks import SCORERS
from crosslign.tasks.data import Items, TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure
from crosslign.tasks.scorers._labels import classes
from crosslign.tasks.scorers._logits import check_classes, logits_of

Metric = Literal["accuracy", "macro_f1", "mae"]


@SCORERS.register(version=2, gives={"{metrics}": (("", "{placeholder:clean}"),)}, subsets_apart=True)
def classification(
    task: TaskData,
    *,
    metrics: Annotated[Sequence[Metric], MinLen(1), Schema(uniqueItems=True)] = ("accuracy",),
    placeholder: str | None = None,
    resamples: Natural = RESAMPLES,
    seed: Natural = 42,
) -> Iterator[Measure]:
    """Yield for each subset how well the class with the highest logit agrees with the gold class; of equal logits the lowest class wins.

    A system that gives one class to all items although the gold classes differ has collapsed; its values are kept and marked.

    Args:
        metrics: `accuracy`; `macro_f1`, the plain mean of F1 over the classes that occur in gold or prediction; `mae`, the mean absolute
            difference of the class numbers (stars of a review).
        placeholder: text that stands for a missing translation (PAWS-X: `NS`); protocol `clean` leaves out items that have it on either
            side, the main protocol keeps them.
        resamples: bootstrap resamples of the items for intervals; 0 for none.
        seed: of the bootstrap.
    """
    data, bootstrap = task.only_corpus(), Bootstrap(task.name, resamples, seed)
    for subset in data.subsets:
        items, where = data.items(subset), f"task {task.name!r}, subset {subset!r}"
        gold, logits = classes(items, task.name, subset), logits_of(data, items, where)
        check_classes(gold, logits, where)
        predicted = logits.argmax(1)
        yield from _measures(subset, "", gold, predicted, metrics, bootstrap.over(items.clusters))
        if placeholder is not None:
            kept = _without(placeholder, data.sentences(items), items)
            whole = bootstrap.over([items.clusters[at] for at in np.flatnonzero(kept).tolist()])
            yield from _measures(subset, "clean", gold[kept], predicted[kept], metrics, whole)


def _without(placeholder: str, sentences: Sequence[tuple[str, str | None]], items: Items) -> np.ndarray:
    return np.fromiter((placeholder not in (text.strip(), (pair or "").strip()) for text, pair in sentences), bool, len(items))


def _measures(
    subset: str, protocol: str, gold: np.ndarray, predicted: np.ndarray, metrics: Sequence[Metric], bootstrap: Bootstrap
) -> Iterator[Measure]:
    n = len(gold)
    if not n:
        yield from (Measure(subset, metric, None, 0, protocol=protocol, reason="no items") for metric in metrics)
        return
    constant = n > 1 and len(np.unique(predicted)) == 1 and len(np.unique(gold)) > 1
    collapsed = f"class {predicted[0]} for every item" if constant else ""
    for metric in metrics:
        values = {"accuracy": predicted == gold, "mae": np.abs(predicted - gold)}.get(metric)
        if values is None:
            counts = class_counts(gold, predicted)
            value = float(macro_f1(counts.sum(0)))
            means = bootstrap.means(counts.reshape(n, -1))
            drawn = None if means is None else macro_f1(means.reshape(len(means), *counts.shape[1:]))
        else:
            value, drawn = float(values.mean()), bootstrap.mean(values)
        yield Measure(subset, metric, value, n, protocol=protocol, resamples=drawn, collapsed=collapsed)


def class_counts(gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return for each item and class whether the class is its gold, its prediction, and both: bool [n, 3, classes]."""
    present = np.union1d(gold, predicted)
    is_gold, is_predicted = gold[:, None] == present, predicted[:, None] == present
    return np.stack([is_gold, is_predicted, is_gold & is_predicted], 1)


def macro_f1(counts: np.ndarray) -> np.ndarray:
    """Return the mean of 2 both / (gold + predicted) over the classes that occur, from counts [..., 3, classes]."""
    total = counts[..., 0, :] + counts[..., 1, :]
    f1: np.ndarray = np.divide(2.0 * counts[..., 2, :], total, out=np.zeros(total.shape), where=total > 0)
    # A resample may lack a class of the items: it is not a class with F1 0 there.
    return np.asarray(f1.sum(-1) / (total > 0).sum(-1))
