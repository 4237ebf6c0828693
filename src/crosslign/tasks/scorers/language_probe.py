"""How well a linear classifier reads the language off a frozen sentence vector (docs/protocols.md; mSimCSE Table 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from crosslign.options import MinLen, Natural, Positive, Schema
from crosslign.tasks import SCORERS
from crosslign.tasks.data import EncodedCorpus, TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure
from crosslign.tasks.scorers._labels import first_of_each, sides, stops_counted
from crosslign.vectors import finite


@SCORERS.register(version=2, gives={"accuracy": (("", "linear_svm"),)})
def language_probe(
    task: TaskData,
    *,
    languages: Mapping[str, Annotated[Sequence[str], MinLen(2), Schema(uniqueItems=True)]],
    max_iter: Positive = 1000,
    resamples: Natural = RESAMPLES,
    seed: Natural = 42,
) -> Iterator[Measure]:
    """Yield the accuracy of a logistic regression (L2, C = 1), and of a linear SVM as a check, for each set of languages.

    Sentences of the corpus `train` teach, those of `test` are asked, or those of the two splits of a single set; each sentence counts
    once, and each language gives as many as the smallest does, the first ones. Vectors are standardised by the training sentences. The
    subset of a record is the name of the set.

    Args:
        languages: languages of each named set.
        max_iter: steps of the logistic regression.
        resamples: bootstrap resamples of the test sentences for intervals; 0 for none.
        seed: of the classifiers and the bootstrap.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    train, test, splits = sides(task)
    bootstrap = Bootstrap(task.name, resamples, seed)
    for name, langs in languages.items():
        (x, taught, _), (asked, gold, clusters) = (_balanced(data, langs, split) for data, split in zip((train, test), splits, strict=True))
        empty = next((side for side, rows in (("train", x), ("test", asked)) if not len(rows)), None)
        models: dict[str, Any] = {
            "logistic_regression": LogisticRegression(C=1.0, max_iter=max_iter, random_state=seed),
            "linear_svm": LinearSVC(C=1.0, random_state=seed),
        }
        for kind, model in models.items():
            protocol = "" if kind == "logistic_regression" else kind
            if empty:
                yield Measure(name, "accuracy", None, 0, protocol=protocol, reason=f"a language has no sentences in {empty}")
                continue
            centre, spread = x.mean(0), x.std(0)
            spread[spread == 0] = 1.0
            with stops_counted(task.name, name):
                right = model.fit((x - centre) / spread, taught).predict((asked - centre) / spread) == gold
            yield Measure(
                name, "accuracy", float(right.mean()), len(right), protocol=protocol, resamples=bootstrap.over(clusters).mean(right)
            )


def _balanced(data: EncodedCorpus, langs: Sequence[str], split: str | None) -> tuple[np.ndarray, np.ndarray, list[str | None]]:
    """Return vectors, float64, the number of each one's language in `langs`, and its cluster."""
    items = data.items(split=split)
    _, first = np.unique(items.rows, return_index=True)
    chosen = [at for at in np.sort(first).tolist() if items.langs[at] in langs]
    labels = np.array([list(langs).index(items.langs[at]) for at in chosen], dtype=np.int64)
    smallest = int(np.bincount(labels, minlength=len(langs)).min())
    kept = first_of_each(labels, smallest)
    at = np.array(chosen, dtype=np.int64)[kept]
    return finite(data.matrix, items.rows[at]).astype(np.float64), labels[kept], [items.clusters[place] for place in at]
