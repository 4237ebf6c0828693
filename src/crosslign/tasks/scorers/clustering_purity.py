"""Purity of k-means clusters against class labels: TNEWS (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Annotated

import numpy as np

from crosslign.options import MinLen, Natural, Positive, Schema
from crosslign.tasks import SCORERS
from crosslign.tasks.data import TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure, centred, summed
from crosslign.tasks.scorers._labels import classes, stops_counted
from crosslign.vectors import normalised

METRICS = ("mean_cluster_purity", "purity")
PROTOCOLS = ("", "random")


@SCORERS.register(version=1, gives={"mean_cluster_purity": (("", "random"),), "purity": (("", "random"),)})
def clustering_purity(
    task: TaskData,
    *,
    k: Positive | None = None,
    seeds: Annotated[Sequence[Natural], MinLen(1), Schema(uniqueItems=True)] = (0, 1, 2, 3, 4),
    n_init: Positive = 10,
    max_iter: Positive = 300,
    resamples: Natural = RESAMPLES,
    seed: Natural = 42,
) -> Iterator[Measure]:
    """Yield for each subset `mean_cluster_purity` and `purity` of k-means on normalised vectors, means over seeds.

    Protocol `random` holds the same of a random assignment of the same items to k clusters.

    Args:
        k: number of clusters; default: the number of classes.
        seeds: of k-means++ and of the random assignment.
        n_init, max_iter: starts and steps of each k-means.
        resamples: bootstrap resamples of the items for intervals, each in the cluster that it is in; 0 for none.
        seed: of the bootstrap.
    """
    from sklearn.cluster import KMeans

    data, bootstrap = task.only_corpus(), Bootstrap(task.name, resamples, seed)
    for subset in data.subsets:
        items = data.items(subset)
        labels = classes(items, task.name, subset)
        clusters = k or len(np.unique(labels))
        if len(items) < clusters:
            reason = f"{len(items)} items are fewer than {clusters} clusters"
            for protocol, metric in product(PROTOCOLS, METRICS):
                yield Measure(subset, metric, None, len(items), protocol=protocol, reason=reason)
            continue
        vectors = normalised(data.matrix, items.rows)
        found: dict[str, list[np.ndarray]] = {protocol: [] for protocol in PROTOCOLS}
        with stops_counted(task.name, subset, "%d of the k-means found fewer different vectors than clusters"):
            for start in seeds:
                means = KMeans(clusters, init="k-means++", n_init=n_init, max_iter=max_iter, random_state=start).fit(vectors)
                found[""].append(means.labels_)
                found["random"].append(np.random.default_rng(start).integers(0, clusters, len(labels)))
        for protocol, assigned in found.items():
            values = np.mean([purities(labels, one) for one in assigned], axis=0)
            drawn = [resampled_purities(labels, one, bootstrap.over(items.clusters)) for one in assigned] if resamples else []
            for at, metric in enumerate(METRICS):
                kept = np.mean([one[:, at] for one in drawn], axis=0) if drawn else None
                value = float(values[at])
                yield Measure(subset, metric, value, len(items), protocol=protocol, resamples=centred(kept, value))


def _cells(labels: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """Return the number of each item's cell in the table of clusters and classes, and the table's shape."""
    _, rows = np.unique(clusters, return_inverse=True)
    _, columns = np.unique(labels, return_inverse=True)
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    return rows * shape[1] + columns, shape


def _of_tables(tables: np.ndarray) -> np.ndarray:
    """Return both purities of tables [r, clusters, classes]: float64 [r, 2]; clusters without items do not count."""
    majority, sizes = tables.max(2), tables.sum(2)
    shares = np.divide(majority, sizes, out=np.zeros(sizes.shape), where=sizes > 0)
    return np.stack([shares.sum(1) / (sizes > 0).sum(1), majority.sum(1) / sizes.sum(1)], 1)


def resampled_purities(labels: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap) -> np.ndarray:
    """Return both purities on resamples of the items: float64 [r, 2]."""
    cells, shape = _cells(labels, clusters)
    parts = [_of_tables(summed(times, cells, shape[0] * shape[1]).reshape(-1, *shape)) for times in bootstrap.counts(len(labels))]
    return np.concatenate(parts)


def purities(labels: np.ndarray, clusters: np.ndarray) -> tuple[float, float]:
    """Return the mean over clusters of the share of a cluster's most frequent class, and the share of items in such classes.

    Args:
        labels: [n], class of each item.
        clusters: [n], its cluster; clusters without items do not count.
    """
    cells, shape = _cells(labels, clusters)
    mean, standard = _of_tables(np.bincount(cells, minlength=shape[0] * shape[1]).reshape(1, *shape))[0].tolist()
    return mean, standard
