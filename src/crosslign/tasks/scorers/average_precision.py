"""Ranked retrieval with several right answers: LAReQA's mAP@20, Mewsli-X's MRR@20 (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from crosslign.errors import InputError
from crosslign.mining.knn import neighbours
from crosslign.options import Natural, Positive
from crosslign.tasks import SCORERS
from crosslign.tasks.data import LEFT, RIGHT, EncodedCorpus, Items, TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure

QUERIES, CANDIDATES = ("queries", "questions", "test"), ("candidates", "queries", "questions", "test")


@SCORERS.register(version=2, gives={"map_at_{cutoff}": (), "mrr_at_{cutoff}": ()})
def average_precision(task: TaskData, *, cutoff: Positive = 20, resamples: Natural = RESAMPLES, seed: Natural = 42) -> Iterator[Measure]:
    """Yield mean average precision and mean reciprocal rank at `cutoff` for each subset of the queries.

    Candidates are one pool, of all subsets: those of the corpus of role `candidates`, or of the queries' own. Gold links stand in
    the queries' set and name candidates by item id; queries without a gold link are not asked.

    Args:
        cutoff: ranks that count.
        resamples: bootstrap resamples of the queries for intervals; 0 for none.
        seed: of the bootstrap.
    """
    queries, pool = task.corpus(*QUERIES), task.corpus(*CANDIDATES)
    if queries is None or pool is None:
        raise InputError("no evaluation corpus of role queries", where=f"tasks.{task.name}.texts", why=f"roles are {sorted(task.corpora)}")
    candidates, bootstrap = pool.items(roles=RIGHT), Bootstrap(task.name, resamples, seed)
    asked = {subset: items for subset in queries.subsets if len(items := queries.items(subset, LEFT))}
    links = {subset: queries.links(subset, items, candidates)[:2] for subset, items in asked.items()}
    # All queries at once: a pool of a million candidates is made ready once, not for each language.
    linked = [subset for subset in asked if len(links[subset][0])]
    rankings = dict(zip(linked, _rankings(queries, pool, [asked[subset] for subset in linked], candidates, cutoff), strict=True))
    for subset in asked:
        if subset not in rankings:
            yield from (Measure(subset, f"{metric}_at_{cutoff}", None, 0, reason="no gold links") for metric in ("map", "mrr"))
            continue
        precision, reciprocal = judge_rankings(rankings[subset], *links[subset], cutoff)
        drawn_over = bootstrap.over([asked[subset].clusters[at] for at in np.unique(links[subset][0])])
        for metric, values in (("map", precision), ("mrr", reciprocal)):
            drawn = drawn_over.mean(values)
            yield Measure(subset, f"{metric}_at_{cutoff}", float(values.mean()), len(values), resamples=drawn)


def _rankings(queries: EncodedCorpus, pool: EncodedCorpus, asked: Sequence[Items], candidates: Items, cutoff: int) -> list[np.ndarray]:
    """Return for each group of queries its nearest candidates: int64 [n, cutoff] each."""
    if not asked:
        return []
    rows = np.concatenate([items.rows for items in asked])
    near = neighbours(queries.matrix, pool.matrix, cutoff, k_back=0, source_rows=rows, target_rows=candidates.rows)
    return np.split(near.forward_indices, np.cumsum([len(items) for items in asked])[:-1])


def judge_rankings(ranking: np.ndarray, queries: np.ndarray, answers: np.ndarray, cutoff: int) -> tuple[np.ndarray, np.ndarray]:
    """Return average precision and reciprocal rank of every query that has an answer, in the order of queries: float64.

    AP = (sum over hits at rank i <= cutoff of hits so far / i) / min(number of answers, cutoff); a candidate that is predicted again is
    no further hit.

    Args:
        ranking: int64 [n, r], candidates of each query, best first; ranks beyond `cutoff` are not looked at.
        queries, answers: int64 [links], gold links.
        cutoff: ranks that count.
    """
    asked = np.unique(queries)
    ranked = ranking[asked, :cutoff]
    size = int(max(ranked.max(initial=0), answers.max())) + 1
    links = np.unique(queries * size + answers)
    hits = np.isin(asked[:, None] * size + ranked, links)
    for rank in range(1, ranked.shape[1]):
        hits[:, rank] &= ~(ranked[:, :rank] == ranked[:, rank, None]).any(1)
    ranks = np.arange(1, ranked.shape[1] + 1)
    relevant = np.searchsorted(links, (asked + 1) * size) - np.searchsorted(links, asked * size)
    precision = (hits * hits.cumsum(1) / ranks).sum(1) / np.minimum(relevant, cutoff)
    return precision, (hits / ranks).max(1, initial=0.0)
