"""Retrieval examples: cosines of the sentences of a pool that are nearest to a few queries (docs/protocols.md; MoCo-BERT Table 10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from crosslign.errors import InputError
from crosslign.mining.knn import neighbours
from crosslign.options import Positive
from crosslign.tasks import SCORERS
from crosslign.tasks.data import TaskData
from crosslign.tasks.measures import Measure

Found = list[tuple[str, list[tuple[str, float]]]]


def nearest_of(vectors: np.ndarray, sentences: Sequence[str], queries: Sequence[int], pool: Sequence[int], top: int) -> Found:
    """Return each query with the `top` sentences of the pool that are nearest and are not the same string, and their cosines.

    Args:
        vectors: [rows, d], of the sentences.
        sentences: all sentences of the evaluation corpus.
        queries, pool: rows of these.
        top: sentences for each query; fewer where the pool holds no more.
    """
    copies = {sentences[row] for row in queries}
    spare = sum(sentences[row] in copies for row in pool)
    near = neighbours(vectors, vectors, top + spare, k_back=0, source_rows=np.array(queries), target_rows=np.array(pool))
    found: Found = []
    for row, indices, scores in zip(queries, near.forward_indices.tolist(), near.forward_scores.tolist(), strict=True):
        others = [(sentences[pool[at]], score) for at, score in zip(indices, scores, strict=True) if sentences[pool[at]] != sentences[row]]
        found.append((sentences[row], others[:top]))
    return found


@SCORERS.register(version=1, gives={"cosine": ()})
def nearest_sentences(task: TaskData, *, top: Positive = 3) -> Iterator[Measure]:
    """Yield `cosine` for each query and rank, as subset `query1_rank1` and so on, with the sentence found as its note.

    Args:
        top: ranks of each query.

    Raises:
        InputError: the evaluation corpus has no queries, or nothing to search.
    """
    data = task.only_corpus()
    queries, pool = data.items(roles={"query"}), data.items(roles={"candidate"})
    if not len(queries) or not len(pool):
        raise InputError("nearest sentences need queries and candidates", where=f"task {task.name!r}")
    rows = np.concatenate([queries.rows, pool.rows])
    sentences = dict(zip(rows.tolist(), (text for items in (queries, pool) for text, _ in data.sentences(items)), strict=True))
    texts = [sentences.get(row, "") for row in range(len(data.matrix))]
    for number, (_, others) in enumerate(nearest_of(data.matrix, texts, queries.rows.tolist(), pool.rows.tolist(), top), start=1):
        for rank in range(1, top + 1):
            subset = f"query{number}_rank{rank}"
            if rank > len(others):
                yield Measure(subset, "cosine", None, len(pool), reason=f"the pool holds {len(others)} other sentences")
                continue
            sentence, cosine = others[rank - 1]
            yield Measure(subset, "cosine", float(cosine), len(pool), note=sentence)
