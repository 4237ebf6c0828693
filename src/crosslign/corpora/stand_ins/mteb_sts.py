"""Synthetic data for STS17 and STS22 as MTEB publishes them: JSON lines of one pair of languages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import graded_of, text_in

PAIRS = 80
"""Pairs of a file at most."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `<pair>.jsonl` or `<pair>.jsonl.gz`: sentence1, sentence2, score, lang. A pair is `en-de`, or `en` within English."""
    pair = name.split(".", maxsplit=1)[0]
    first, second = pair.split("-") if "-" in pair else (pair, pair)
    records = [
        {"sentence1": text_in(graded.first, first), "sentence2": text_in(graded.second, second), "score": graded.grade, "lang": pair}
        for graded in graded_of(sentences)[:PAIRS]
    ]
    return lines([json.dumps(record, ensure_ascii=False) for record in records])
