"""Synthetic data for MultiEURLEX: laws with their texts in 23 languages and their concepts of EUROVOC, JSON lines in a tar."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import Triplet, text_in, triplets_of

LANGS = [
    "bg",
    "cs",
    "da",
    "de",
    "el",
    "en",
    "es",
    "et",
    "fi",
    "fr",
    "hr",
    "hu",
    "it",
    "lt",
    "lv",
    "mt",
    "nl",
    "pl",
    "pt",
    "ro",
    "sk",
    "sl",
    "sv",
]
FIRST_CONCEPT, CONCEPTS = 100_142, 21
SPLITS = ("train", "dev", "test")
LAWS = 42
"""Laws of a part at most, two of each concept."""


def _law(number: int, triplet: Triplet) -> str:
    texts = {lang: f"{text_in(triplet.premise, lang)} {text_in(triplet.entailed, lang)}" for lang in LANGS}
    concepts = [str(FIRST_CONCEPT + (number + step) % CONCEPTS) for step in range(0, 1 + number % 3 * 5, 5)]
    record = {"celex_id": f"32026R{number:04d}", "publication_date": "2026-01-01", "text": texts}
    return json.dumps({**record, "eurovoc_concepts": {"level_1": concepts}}, ensure_ascii=False)


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `train.jsonl`, `dev.jsonl` and `test.jsonl`; every concept of level 1 occurs, a law has one to three."""
    triplets, members = triplets_of(sentences), dict[str, bytes]()
    for at, split in enumerate(SPLITS):
        chosen = triplets[at :: len(SPLITS)][:LAWS]
        members[f"{split}.jsonl"] = lines([_law(number, triplet) for number, triplet in enumerate(chosen)])
    return members
