"""Stand-ins for MTOP's domains as MTEB publishes them: JSON lines of one language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines, write_file
from crosslign.corpora.stand_ins._sentences import needed, text_in

DOMAINS = ("messaging", "calling", "event", "timer", "music", "weather", "alarm", "people", "reminder", "recipes", "news")
SPLITS = ("train", "validation", "test")
ROUNDS = 16
"""Utterances of a domain at most: the classifier draws eight of each."""


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `<split>_<language>.jsonl`: id, text, label, label_text; the eleven domains take turns, no two splits share a sentence.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    name = str(file["name"])
    needed(sentences, name)
    split, lang = name.removesuffix(".jsonl").split("_")
    chosen = sentences[SPLITS.index(split) :: len(SPLITS)][: ROUNDS * len(DOMAINS)]
    rows = [
        {"id": str(at), "text": text_in(sentence, lang), "label": at % len(DOMAINS), "label_text": DOMAINS[at % len(DOMAINS)]}
        for at, sentence in enumerate(chosen)
    ]
    write_file(dest, name, lines([json.dumps(row, ensure_ascii=False) for row in rows]))
