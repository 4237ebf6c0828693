"""Mentions of entities and what describes them, as Mewsli-X writes them (docs/protocols.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crosslign.corpora.readers._json import value
from crosslign.errors import InputError

BRACED = re.compile(r"\{(.*?)\}")
"""Braces of the text itself, which become parentheses."""


def query(context: Mapping[str, Any], mention: Mapping[str, Any], place: str) -> str:
    """Return a mention, a colon, and the sentence that it stands in, with the mention in braces, as XTREME-R's baseline does.

    Raises:
        InputError: a key is missing, or the mention lies in no sentence.
    """
    span = value(mention, "mention_span", place)
    start, end = value(span, "start", place), value(span, "end", place)
    for sentence in value(context, "sentence_spans", place):
        if sentence["start"] <= start and end <= sentence["end"]:
            text = context["text"]
            named = text[start:end]
            left, right = (BRACED.sub(r"(\1)", side) for side in (text[sentence["start"] : start], text[end : sentence["end"]]))
            return _one_line(f"{named}: {left} {{ {named} }} {right}")
    raise InputError("a mention is in no sentence", where=place, why=f"characters {start} to {end}")


def description(entity: Mapping[str, Any]) -> str:
    """Return the sentences of an entity's description, joined by spaces; all of it without spans, its id where it has none."""
    text: str = entity["description"]
    told = " ".join(text[span["start"] : span["end"]] for span in entity.get("sentence_spans", ()))
    return _one_line(told) or text or str(entity["entity_id"])


def _one_line(text: str) -> str:
    """Return a text without line ends and, but for longer runs, without double spaces."""
    return " ".join(text.splitlines()).replace("  ", " ").strip()
