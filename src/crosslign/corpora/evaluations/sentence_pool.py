"""Retrieval examples: a few queries, and a random pool of a corpus's sentences (PROTOCOLS B22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import EVALUATIONS
from crosslign.corpora.columns import sentences_of
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.sampling import sample
from crosslign.errors import InputError


@EVALUATIONS.register
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
    sentences: dict[str, None] = {}
    for table in corpora.values():
        for codes, texts in sentences_of(table):
            pairs = zip(codes.to_pylist(), texts.to_pylist(), strict=True)
            sentences.update((text, None) for lang, text in pairs if lang == langs[0] and text)
    if not sentences:
        raise InputError(f"no sentence in {langs[0]!r}", where=name, why=f"corpora: {', '.join(corpora)}")
    pool = list(sentences)
    builder = EvaluationBuilder(name)
    for number, query in enumerate(queries, start=1):
        builder.item(f"query-{number}", langs[0], "query", langs[0], query)
    for index in sample(pool, min(size, limit or size), seed).tolist():
        builder.item(f"sentence-{index}", langs[0], "candidate", langs[0], pool[index])
    return builder.build()
