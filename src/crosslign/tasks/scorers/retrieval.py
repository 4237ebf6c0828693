"""Nearest-neighbour accuracy over gold links: Tatoeba, FLORES-200 (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours
from crosslign.options import Natural
from crosslign.tasks import SCORERS
from crosslign.tasks.data import Items, TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure, centred, nearest_item_scores, resampled_item_scores

PROTOCOLS = ("", "strict", "string_equal")


@SCORERS.register(
    version=2,
    gives={
        "accuracy": (("", "strict", "string_equal"), ("xx2en", "en2xx", "mean")),
        "error_rate": ((), ("xx2en", "en2xx", "mean")),
        "weighted_f1": (("mteb",), ("xx2en",)),
    },
    subsets_apart=True,
)
def retrieval(task: TaskData, *, resamples: Natural = RESAMPLES, seed: Natural = 42) -> Iterator[Measure]:
    """Yield, for each subset, accuracy in both directions and their mean, and LASER's error rate.

    Every item with a gold link is a query among all items of the other side; directions are `xx2en` (source to target), `en2xx` and
    `mean`. Protocols: none, where of equal cosines the lowest index wins; `strict`, where a tie is an error; `string_equal`, where a hit
    is any item with the same text as a gold item. `weighted_f1` of protocol `mteb` is MTEB's main score of Tatoeba.

    Args:
        resamples: bootstrap resamples of the queries for intervals; 0 for none.
        seed: of the bootstrap.
    """
    data = task.only_corpus()
    for subset in data.subsets:
        left, right, sources, targets, _ = data.linked(subset)
        if not len(sources):
            for direction in ("xx2en", "en2xx", "mean"):
                for protocol in PROTOCOLS:
                    yield Measure(subset, "accuracy", None, 0, direction, protocol, reason="no gold links")
                yield Measure(subset, "error_rate", None, 0, direction, reason="no gold links")
            yield Measure(subset, "weighted_f1", None, 0, "xx2en", "mteb", reason="no gold links")
            continue
        devices = list(task.machine.devices)
        near = neighbours(data.matrix, data.matrix, 2, source_rows=left.rows, target_rows=right.rows, device=devices)
        verdicts = _verdicts(near, left, right, sources, targets)
        bootstrap, nearest = Bootstrap(task.name, resamples, seed), near.forward_indices[sources, 0]
        asked_of = ((left, sources), (right, targets))
        yield from _measures(
            subset, verdicts, *(bootstrap.over([side.clusters[at] for at in np.unique(asked)]) for side, asked in asked_of)
        )
        f1 = nearest_item_scores(targets, nearest)["weighted_f1"]
        drawn = resampled_item_scores(targets, nearest, bootstrap.over([left.clusters[at] for at in sources])).get("weighted_f1")
        yield Measure(subset, "weighted_f1", f1, len(sources), "xx2en", "mteb", resamples=centred(drawn, f1))


def _verdicts(
    near: Neighbours, left: Items, right: Items, sources: np.ndarray, targets: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray, bool]]:
    """Return for each protocol whether each query is answered, in both directions, and whether these two are aligned link by link."""
    forward = judge(near.forward_indices, near.forward_scores, sources, targets, right.rows)
    backward = judge(near.backward_indices, near.backward_scores, targets, sources, left.rows)
    one_to_one = len(np.unique(sources)) == len(np.unique(targets)) == len(sources)
    if one_to_one:
        # Queries are judged in the order of their positions; bring those of the other side into the same order of links.
        order = np.argsort(np.argsort(targets))[np.argsort(sources)]
        backward = {protocol: verdict[order] for protocol, verdict in backward.items()}
    return {protocol: (forward[protocol], backward[protocol], one_to_one) for protocol in PROTOCOLS}


def judge(indices: np.ndarray, scores: np.ndarray, queries: np.ndarray, answers: np.ndarray, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Judge every query that has a gold answer, in the order of queries.

    Args:
        indices, scores: [n, 1 or 2], nearest candidates of each query, best first, of equal scores the lowest index first.
        queries, answers: int64 [links], gold links; a query may have several answers.
        rows: int64 [m], text row of each candidate; candidates of equal text share one.

    Returns:
        For each protocol, bool [queries that have an answer].
    """
    asked = np.unique(queries)
    predicted = indices[asked, 0]
    tie = scores[asked, 0] == scores[asked, 1] if scores.shape[1] > 1 else np.zeros(len(asked), dtype=bool)
    m, texts = len(rows), int(rows.max()) + 1
    hit = np.isin(asked * m + predicted, queries * m + answers)
    return {
        "": hit,
        "strict": hit & ~tie,
        "string_equal": np.isin(asked * texts + rows[predicted], queries * texts + rows[answers]),
    }


def _measures(
    subset: str, verdicts: dict[str, tuple[np.ndarray, np.ndarray, bool]], of_sources: Bootstrap, of_targets: Bootstrap
) -> Iterator[Measure]:
    for protocol, (forward, backward, aligned) in verdicts.items():
        # Aligned verdicts stand in the order of the sources, whose clusters are their targets', too.
        there, back = of_sources.mean(forward), (of_sources if aligned else of_targets).mean(backward)
        if aligned:
            both = of_sources.mean((forward.astype(np.float64) + backward) / 2)
        else:
            both = None if there is None or back is None else (there + back) / 2
        accuracies = float(forward.mean()), float(backward.mean())
        for direction, value, n, drawn in (
            ("xx2en", accuracies[0], len(forward), there),
            ("en2xx", accuracies[1], len(backward), back),
            ("mean", sum(accuracies) / 2, len(forward), both),
        ):
            yield Measure(subset, "accuracy", value, n, direction, protocol, resamples=drawn)
            if not protocol:
                yield Measure(subset, "error_rate", 1 - value, n, direction, resamples=None if drawn is None else 1 - drawn)
