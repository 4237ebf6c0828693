"""Purity of k-means clusters against class labels: TNEWS (PROTOCOLS B11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from crosslign.tasks import SCORERS
from crosslign.tasks.data import TaskData
from crosslign.tasks.measures import Measure
from crosslign.tasks.scorers._labels import classes
from crosslign.vectors import normalised


@SCORERS.register
def clustering_purity(
    task: TaskData, *, k: int | None = None, seeds: Sequence[int] = (0, 1, 2, 3, 4), n_init: int = 10, max_iter: int = 300
) -> Iterator[Measure]:
    """Yield for each subset `mean_cluster_purity` and `purity` of k-means on normalised vectors, means over seeds.

    Protocol `random` holds the same of a random assignment of the same items to k clusters.

    Args:
        k: number of clusters; default: the number of classes.
        seeds: of k-means++ and of the random assignment.
        n_init, max_iter: starts and steps of each k-means.
    """
    from sklearn.cluster import KMeans

    data = task.only_set()
    for subset in data.subsets:
        items = data.items(subset)
        labels = classes(items, task.name, subset)
        clusters = k or len(np.unique(labels))
        if len(items) < clusters:
            reason = f"{len(items)} items are fewer than {clusters} clusters"
            yield from (Measure(subset, metric, None, len(items), reason=reason) for metric in ("mean_cluster_purity", "purity"))
            continue
        vectors = normalised(data.matrix, items.rows)
        found = {"": [], "random": []}  # type: dict[str, list[tuple[float, float]]]
        for seed in seeds:
            means = KMeans(clusters, init="k-means++", n_init=n_init, max_iter=max_iter, random_state=seed).fit(vectors)
            found[""].append(purities(labels, means.labels_))
            found["random"].append(purities(labels, np.random.default_rng(seed).integers(0, clusters, len(labels))))
        for protocol, values in found.items():
            for metric, value in zip(("mean_cluster_purity", "purity"), np.mean(values, axis=0), strict=True):
                yield Measure(subset, metric, float(value), len(items), protocol=protocol)


def purities(labels: np.ndarray, clusters: np.ndarray) -> tuple[float, float]:
    """Return the mean over clusters of the share of a cluster's most frequent class, and the share of items in such classes.

    Args:
        labels: [n], class of each item.
        clusters: [n], its cluster; clusters without items do not count.
    """
    _, rows = np.unique(clusters, return_inverse=True)
    _, columns = np.unique(labels, return_inverse=True)
    table = np.zeros((rows.max() + 1, columns.max() + 1), dtype=np.int64)
    np.add.at(table, (rows, columns), 1)
    majority = table.max(1)
    return float((majority / table.sum(1)).mean()), float(majority.sum() / len(labels))
