"""Stand-ins for STS17 and STS22 as MTEB publishes them: JSON lines of one pair of languages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines, write_file
from crosslign.corpora.stand_ins._sentences import graded_of, text_in

PAIRS = 80
"""Pairs of a file at most."""


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `<pair>.jsonl` or `<pair>.jsonl.gz`: sentence1, sentence2, score, lang. A pair is `en-de`, or `en` within English.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    name = str(file["name"])
    pair = name.split(".", maxsplit=1)[0]
    first, second = pair.split("-") if "-" in pair else (pair, pair)
    records = [
        {"sentence1": text_in(graded.first, first), "sentence2": text_in(graded.second, second), "score": graded.grade, "lang": pair}
        for graded in graded_of(sentences)[:PAIRS]
    ]
    write_file(dest, name, lines([json.dumps(record, ensure_ascii=False) for record in records]))
