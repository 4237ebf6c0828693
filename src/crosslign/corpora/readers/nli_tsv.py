"""The project's own NLI triplets, as labelled pairs: entailment 0, contradiction 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._tables import tables
from crosslign.corpora.written import NLI_COLUMNS, files_by_lang, read_aligned

LABELS = {"entailed": 0.0, "contradicting": 2.0}
"""Class numbers of XNLI: entailment 0, neutral 1 (not written), contradiction 2."""


@READERS.register(version=1, gives="labelled")
def read(files: Mapping[str, Path], corpus: str, langs: Sequence[str]) -> Iterator[pa.Table]:
    """Yield `labelled` rows, two a triplet and language: premise with its entailed and with its contradicting sentence.

    The group of both is the item's id, so aligned rows are those of equal group and label.

    Args:
        files: `nli_<lang>.tsv` by name.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>:<column>`.
        langs: languages to read, in that order.

    Raises:
        InputError: a malformed line, or an item that a language lacks.
    """
    columns = ("id", "a_lang", "a_text", "b_lang", "b_text", "label", "group")
    yield from tables(_rows(files_by_lang(files, "nli", list(langs), corpus), corpus), "labelled", columns)


def _rows(paths: Mapping[str, Path], corpus: str) -> Iterator[tuple[Any, ...]]:
    for lang, items in read_aligned(paths, NLI_COLUMNS).items():
        for item, (number, row) in items.items():
            for column, label in LABELS.items():
                yield f"{corpus}:{paths[lang].name}:{number}:{column}", lang, row["premise"], lang, row[column], [label], item
