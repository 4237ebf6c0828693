"""Mentions of entities and what describes them, as Mewsli-X writes them (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosslign.corpora.readers._json import value
from crosslign.errors import InputError


def query(context: Mapping[str, Any], mention: Mapping[str, Any], place: str) -> str:
    """Return a mention, a colon, and the sentence that it stands in, with the mention in braces.

    Raises:
        InputError: a key is missing, or the mention lies in no sentence.
    """
    span = value(mention, "mention_span", place)
    start, end = value(span, "start", place), value(span, "end", place)
    for sentence in value(context, "sentence_spans", place):
        if sentence["start"] <= start and end <= sentence["end"]:
            text = context["text"]
            named = text[start:end]
            return f"{named}: {text[sentence['start'] : start]}{{{named}}}{text[end : sentence['end']]}"
    raise InputError("a mention lies in no sentence", where=place, why=f"characters {start} to {end}")


def description(entity: Mapping[str, Any]) -> str:
    """Return the sentences of an entity's description, joined by spaces; all of it without spans, its id where it has none."""
    text: str = entity["description"]
    return " ".join(text[span["start"] : span["end"]] for span in entity.get("sentence_spans", ())) or text or str(entity["entity_id"])
