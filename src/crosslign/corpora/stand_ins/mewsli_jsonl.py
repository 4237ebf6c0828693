"""Stand-ins for Mewsli-X: mentions in news of eleven languages, and the entities that they mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import Triplet, text_in, triplets_of

LANGS = ("ar", "de", "en", "es", "fa", "ja", "pl", "ro", "ta", "tr", "uk")
ENTITIES = 40
"""Entities at most; a part has a mention of each in every language."""


def _mention(at: int, sentence: Mapping[str, str], lang: str) -> dict[str, Any]:
    text = text_in(sentence, lang)
    span = {"start": 0, "end": len(text.split()[0])}
    context = {"text": text, "language": lang, "sentence_spans": [{"start": 0, "end": len(text)}]}
    return {"context": context, "mention": {"example_id": f"{lang}-{at}", "mention_span": span, "entity_id": f"Q{at + 1}"}}


def _entity(at: int, triplet: Triplet, lang: str) -> dict[str, Any]:
    text = text_in(triplet.premise, lang)
    return {
        "entity_id": f"Q{at + 1}",
        "description": text,
        "description_language": lang,
        "sentence_spans": [{"start": 0, "end": len(text)}],
    }


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `wikinews_mentions-<split>.jsonl`, `candidate_set_entities.jsonl` or `wikipedia_pairs-train.jsonl`.

    A premise describes what follows from it mentions; in training pairs, what contradicts it: no sentence of a test is among them.
    """
    triplets = triplets_of(sentences)[:ENTITIES]
    if "pairs" in name:
        mentions = [_mention(at, triplet.contradicting, "en") for at, triplet in enumerate(triplets)]
        entities = [_entity(at, triplet, "en") for at, triplet in enumerate(triplets)]
        records = [{"contextual_mention": m, "entity": e} for m, e in zip(mentions, entities, strict=True)]
    elif "entities" in name:
        records = [_entity(at, triplet, LANGS[at % len(LANGS)]) for at, triplet in enumerate(triplets)]
    else:
        records = [_mention(at, triplet.entailed, lang) for lang in LANGS for at, triplet in enumerate(triplets)]
    return lines([json.dumps(record, ensure_ascii=False) for record in records])
