"""Synthetic data for the Parquet form of Wikipedia."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._sentences import text_in

PARAGRAPH, ARTICLE = 3, 12
"""Sentences of a paragraph, and of an article."""


def articles(sentences: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """Return English sentences as articles, each a list of paragraphs."""
    texts = [text_in(sentence, "en") for sentence in sentences]
    return [
        [" ".join(texts[start : min(start + PARAGRAPH, at + ARTICLE)]) for start in range(at, min(at + ARTICLE, len(texts)), PARAGRAPH)]
        for at in range(0, len(texts), ARTICLE)
    ]


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return articles with the columns id, url, title, text."""
    rows = [
        {"id": str(number), "url": f"https://example.org/{number}", "title": f"Article {number}", "text": "\n\n".join(paragraphs)}
        for number, paragraphs in enumerate(articles(sentences), start=1)
    ]
    table = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), table)
    return table.getvalue()
