"""Retrieval examples: a few queries, and a random pool of a corpus's sentences (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.columns import sentences_of
from crosslign.corpora.dedup import digests
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.sampling import Draw
from crosslign.errors import InputError
from crosslign.files.rows import pieces
from crosslign.options import Positive, Texts


@EVALUATIONS.register(version=2)
def read(given: Given, *, queries: Texts, size: Positive = 1_000_000) -> Evaluation:
    """Return one subset, called by the language: queries, and at most min(size, limit) distinct sentences drawn from the corpora.

    Args:
        given.corpora: any kind of corpus; its sentences in the language are drawn from.
        given.langs: one language, that of queries and sentences.
        given.seed: draws the sentences.
        queries: sentences whose neighbours are searched.
        size: sentences of the pool.

    Raises:
        InputError: not one language, or no sentence in it.
    """
    if len(given.langs) != 1:
        raise InputError("exactly one language is needed", where=given.name, why=f"found {list(given.langs)}")
    pool = _pool(given.corpora, given.langs[0], min(size, given.limit or size), given.seed)
    if not pool:
        raise InputError(f"no sentence in {given.langs[0]!r}", where=given.name, why=f"corpora: {', '.join(given.corpora)}")
    builder = EvaluationBuilder(given.name)
    for number, query in enumerate(queries, start=1):
        builder.item(f"query-{number}", given.langs[0], "query", given.langs[0], query)
    for number, sentence in enumerate(pool, start=1):
        builder.item(f"sentence-{number}", given.langs[0], "candidate", given.langs[0], sentence)
    return builder.build()


def _pool(corpora: Mapping[str, pa.Table], lang: str, size: int, seed: int) -> list[str]:
    """Return at most `size` distinct sentences, in the order of the corpora, in memory for a few times as many."""
    draw = Draw(size, seed, lambda table: digests(table["text"]))
    for table in corpora.values():
        for piece in pieces(table):
            for codes, texts in sentences_of(piece):
                here = texts.filter(pc.and_(pc.equal(codes, lang), pc.greater(pc.binary_length(texts), 0)))
                draw.add(pa.table({"text": here}))
    return [text for table in draw.drawn() for text in table["text"].to_pylist()]
