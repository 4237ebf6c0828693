"""Retrieval examples: a few queries, and a random pool of a corpus's sentences (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora import EVALUATIONS
from crosslign.corpora.columns import sentences_of
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.sampling import Lowest, priorities
from crosslign.errors import InputError
from crosslign.files.rows import pieces

SPARE = 65_536
"""Sentences that are held beyond twice those wanted, before those that cannot be drawn any more are let go."""


@EVALUATIONS.register(version=1)
def read(
    files: Mapping[str, Path],
    corpora: Mapping[str, pa.Table],
    name: str,
    langs: Sequence[str],
    limit: int | None,
    seed: int,
    *,
    queries: Sequence[str],
    size: int = 1_000_000,
) -> Evaluation:
    """Return one subset, called by the language: queries, and at most min(size, limit) distinct sentences drawn from the corpora.

    Args:
        files: none.
        corpora: any kind of corpus; its sentences in the language are drawn from.
        name: id of the evaluation corpus.
        langs: one language, that of queries and sentences.
        limit: upper bound on `size`.
        seed: draws the sentences.
        queries: sentences to look for.
        size: sentences of the pool.

    Raises:
        InputError: not one language, or no sentence in it.
    """
    if len(langs) != 1:
        raise InputError("one language is needed", where=name, why=f"found {list(langs)}")
    pool = _pool(corpora, langs[0], min(size, limit or size), seed)
    if not pool:
        raise InputError(f"no sentence in {langs[0]!r}", where=name, why=f"corpora: {', '.join(corpora)}")
    builder = EvaluationBuilder(name)
    for number, query in enumerate(queries, start=1):
        builder.item(f"query-{number}", langs[0], "query", langs[0], query)
    for number, sentence in enumerate(pool, start=1):
        builder.item(f"sentence-{number}", langs[0], "candidate", langs[0], sentence)
    return builder.build()


def _pool(corpora: Mapping[str, pa.Table], lang: str, size: int, seed: int) -> list[str]:
    """Return at most `size` distinct sentences, in the order of the corpora, in memory for a few times as many."""
    least = Lowest(size)
    drawn: dict[str, np.uint64] = {}
    for table in corpora.values():
        for piece in pieces(table):
            for codes, texts in sentences_of(piece):
                here = texts.filter(pc.equal(codes, lang)).unique().to_pylist()
                new = [text for text in here if text and text not in drawn]
                keys = priorities(new, seed)
                drawn.update((text, key) for text, key in zip(new, keys, strict=True) if key <= least.bound)
                least.add(keys[keys <= least.bound])
            if len(drawn) > 2 * size + SPARE:
                drawn = _below(drawn, least)
    return list(_below(drawn, least))


def _below(drawn: Mapping[str, np.uint64], least: Lowest) -> dict[str, np.uint64]:
    bound = least.final()
    return {text: key for text, key in drawn.items() if key <= bound}
