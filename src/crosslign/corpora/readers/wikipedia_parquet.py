"""Sentences of Wikipedia from its ready Parquet form (`wikimedia/wikipedia` on the hub: id, url, title, text)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._parquet import read_texts
from crosslign.corpora.readers._prose import sentences
from crosslign.corpora.readers._tables import tables
from crosslign.corpora.unpacking import AGAIN
from crosslign.options import Len, Positive


@READERS.register(version=3, gives="mono", languages=1)
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    min_words: Positive = 1,
    columns: Annotated[Sequence[str], Len(2, 2)] = ("id", "text"),
) -> Iterator[pa.Table]:
    """Yield `mono` rows, sentence after sentence of article after article.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<article>.<sentence>`, counted from 1.
        langs: the language of the articles.
        min_words: sentences and headings of fewer words are left out.
        columns: names of the columns of the article's id and text.

    Raises:
        InputError: a file that is not Parquet, a column that is missing, or one of texts that holds none.
    """
    rows = (row for name, path in files.items() for row in _rows(name, Path(path), corpus, langs[0], min_words, columns))
    yield from tables(rows, "mono", ("id", "lang", "text"))


def _rows(name: str, path: Path, corpus: str, lang: str, min_words: int, columns: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for articles, texts in read_texts(path, columns[1], columns[0], again=AGAIN):
        for article, text in zip(articles, texts, strict=True):
            for number, sentence in enumerate(sentences(text or ""), start=1):
                if len(sentence.split()) >= min_words:
                    yield f"{corpus}:{name}:{article}.{number}", lang, sentence
