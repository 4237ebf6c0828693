"""Synthetic data for MTOP's domains as MTEB publishes them: JSON lines of one language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in

DOMAINS = ("messaging", "calling", "event", "timer", "music", "weather", "alarm", "people", "reminder", "recipes", "news")
SPLITS = ("train", "validation", "test")
ROUNDS = 16
"""Utterances of a domain at most: the classifier draws eight of each."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `<split>_<language>.jsonl`: id, text, label, label_text; the eleven domains take turns, no two splits share a sentence."""
    split, lang = name.removesuffix(".jsonl").split("_")
    chosen = sentences[SPLITS.index(split) :: len(SPLITS)][: ROUNDS * len(DOMAINS)]
    rows = [
        {"id": str(at), "text": text_in(sentence, lang), "label": at % len(DOMAINS), "label_text": DOMAINS[at % len(DOMAINS)]}
        for at, sentence in enumerate(chosen)
    ]
    return lines([json.dumps(row, ensure_ascii=False) for row in rows])
