"""xSIM: how often the best translation by margin is another sentence.

Heffernan, Çelebi and Schwenk 2022, doi:10.18653/v1/2022.findings-emnlp.154.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crosslign.mining.knn import neighbours
from crosslign.mining.margin import Margin, mine
from crosslign.options import Natural, Positive
from crosslign.tasks import SCORERS
from crosslign.tasks.data import TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure


@SCORERS.register(version=2, gives={"error_rate": ((), ("xx2en", "en2xx"))}, subsets_apart=True)
def xsim(
    task: TaskData, *, k: Positive = 4, margin: Margin = "ratio", resamples: Natural = RESAMPLES, seed: Natural = 42
) -> Iterator[Measure]:
    """Yield, for each subset and both directions, the share of sentences whose best candidate by margin is none of their translations.

    Candidates of a sentence are its `k` nearest of the other side; of equal margins the lowest index wins. Sentences are compared as LASER
    does, by their text: one that stands there twice is right in both places. A side may hold sentences without a translation, such as
    altered copies of the right ones: with these it is xSIM++ (Chen et al. 2023, doi:10.18653/v1/2023.acl-short.10).

    Args:
        k: neighbours that a margin is measured against, at most as many as the other side has.
        margin: cosine over (`ratio`) or less (`distance`) the mean of the cosines to both sides' neighbours, or the cosine (`absolute`).
        resamples: bootstrap resamples of the queries for intervals; 0 for none.
        seed: of the bootstrap.
    """
    data = task.only_corpus()
    for subset in data.subsets:
        left, right, sources, targets, _ = data.linked(subset)
        if not len(sources):
            yield from (Measure(subset, "error_rate", None, 0, direction, reason="no gold links") for direction in ("xx2en", "en2xx"))
            continue
        near = neighbours(data.matrix, data.matrix, k, source_rows=left.rows, target_rows=right.rows, device=list(task.machine.devices))
        bootstrap = Bootstrap(task.name, resamples, seed)
        for direction, found, side, other, queries, answers in (
            ("xx2en", near, left, right, sources, targets),
            ("en2xx", near.turned(), right, left, targets, sources),
        ):
            asked, texts = np.unique(queries), len(data.matrix)
            best = mine(found, margin, "fwd").targets[asked]
            wrong = ~np.isin(asked * texts + other.rows[best], queries * texts + other.rows[answers])
            drawn = bootstrap.over([side.clusters[at] for at in asked]).mean(wrong)
            yield Measure(subset, "error_rate", float(wrong.mean()), len(asked), direction, resamples=drawn)
