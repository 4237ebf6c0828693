"""Synthetic data for reviews with their stars, as MTEB's copy of the Multilingual Amazon Reviews has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in

SPLITS = ("train", "validation", "test")
STARS = 5
ROUNDS = 12
"""Reviews of each number of stars at most."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `<split>_<language>.jsonl`: id, text (title, empty line, body), label 0 to 4; no two splits share a sentence."""
    split, lang = name.removesuffix(".jsonl").split("_")
    chosen = sentences[SPLITS.index(split) :: len(SPLITS)][: ROUNDS * STARS]
    texts = [text_in(sentence, lang) for sentence in chosen]
    rows = [
        {"id": f"{lang}_{at}", "text": f"{text.split()[0]}\n\n{text}", "label": at % STARS, "label_text": str(at % STARS)}
        for at, text in enumerate(texts)
    ]
    return lines([json.dumps(row, ensure_ascii=False) for row in rows])
