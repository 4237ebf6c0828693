"""Synthetic data for Mewsli-X as the hub's copy has it: mentions in news of eleven languages, and the entities that they mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of

LANGS = ("ar", "de", "en", "es", "fa", "ja", "pl", "ro", "ta", "tr", "uk")
ENTITIES = 40
"""Entities at most; a file has a mention of each."""


def _mention(sentence: Mapping[str, str], lang: str) -> str:
    text = text_in(sentence, lang)
    named = text.split()[0]
    return f"{named}: {{{named}}}{text[len(named) :]}"


@STAND_INS.register(version=2)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes | dict[str, bytes]:
    """Return `wikinews_mentions-<language>-<split>.jsonl`, `candidate_entities.jsonl.tar.gz` or `wikipedia_pairs-<split>.jsonl.tar.gz`.

    A premise describes what follows from it mentions; in training pairs, what contradicts it: no sentence of a test is among them.
    """
    triplets = list(enumerate(triplets_of(sentences)[:ENTITIES]))
    if name.startswith("wikinews_mentions-"):
        lang = name.split("-")[1]
        records = [{"mention": _mention(triplet.entailed, lang), "entity_id": f"Q{at + 1}"} for at, triplet in triplets]
    elif "entities" in name:
        records = [{"entity_id": f"Q{at + 1}", "description": text_in(t.premise, LANGS[at % len(LANGS)])} for at, t in triplets]
    else:
        records = [{"mention": _mention(t.contradicting, "en"), "entity": text_in(t.premise, "en")} for _, t in triplets]
    found = lines([json.dumps(record, ensure_ascii=False) for record in records])
    return {name.removesuffix(".tar.gz"): found} if name.endswith(".tar.gz") else found
