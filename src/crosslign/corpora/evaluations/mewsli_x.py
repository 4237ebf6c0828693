"""Mewsli-X: mentions in WikiNews and one million descriptions of entities, JSON lines of the official build (PROTOCOLS B13)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from crosslign.corpora import EVALUATIONS
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.readers._json import in_form, records, value
from crosslign.corpora.readers._mentions import description, query
from crosslign.corpora.readers._parts import Part, all_parts
from crosslign.errors import InputError

ENTITIES = re.compile(r"candidate_set_entities\.jsonl(\.gz)?$")
MENTIONS = re.compile(r"wikinews_mentions-(\w+)\.jsonl(\.gz)?$")


@EVALUATIONS.register(version=1)
def read(
    files: Mapping[str, Path],
    corpora: Mapping[str, pa.Table],
    name: str,
    langs: Sequence[str],
    limit: int | None,
    seed: int,
    *,
    part: Literal["mentions", "entities"],
    split: str = "test",
) -> Evaluation:
    """Return the mentions (queries, one subset a language) or the entities (candidates).

    A query is the mention, a colon, and the sentence that it stands in, with the mention in braces; a candidate is the sentences of the
    entity's description, joined by spaces. A mention whose entity is no candidate can be checked only where both sets meet: there gold
    that names no item is an error.

    Args:
        files: `wikinews_mentions-<split>.jsonl` and `candidate_set_entities.jsonl`, gzip or not.
        corpora: none.
        name: id of the evaluation corpus.
        langs: languages of the mentions; all, when empty. Entities stay whole.
        limit: upper bound on the mentions of a language, from the first, and on 100 times as many entities beside the gold ones.
        seed: not used.
        part: which of the two sets.
        split: dev or test.

    Raises:
        InputError: a file is missing, a record of another form, an id twice, a mention that lies in no sentence.
    """
    parts = all_parts(files)
    mentions = next((p for p in parts if (match := MENTIONS.search(p.name)) and match[1] == split), None)
    entities = next((p for p in parts if ENTITIES.search(p.name)), None)
    if mentions is None or entities is None:
        lacking = f"wikinews_mentions-{split}.jsonl" if mentions is None else "candidate_set_entities.jsonl"
        raise InputError(f"file {lacking} is missing", where=name, why=f"found {sorted(p.name for p in parts)}")
    chosen = _mentions(list(records(mentions, ("context.text", "context.language"))), mentions.at(), set(langs), limit)
    builder = EvaluationBuilder(name)
    if part == "mentions":
        for lang, identity, text, entity in chosen:
            builder.item(identity, lang, "query", lang, text)
            builder.link(lang, identity, entity)
        return builder.build()
    _add_entities(builder, entities, {entity for *_, entity in chosen}, None if limit is None else 100 * limit)
    return builder.build()


def _add_entities(builder: EvaluationBuilder, file: Part, wanted: set[str], room: int | None) -> None:
    """Add the first `room` entities, all when None, and those that are wanted."""
    seen = set[str]()
    for number, record in records(file, ("entity_id", "description", "description_language", "sentence_spans")):
        identity = str(record["entity_id"])
        if identity in seen:
            raise InputError(f"entity {identity!r} occurs twice", where=file.at(number))
        seen.add(identity)
        if identity in wanted or room is None or len(seen) <= room:
            with in_form("Mewsli-X", file.at(number)):
                builder.item(identity, "all", "candidate", record["description_language"], description(record))


def _mentions(
    found: Sequence[tuple[int, dict[str, Any]]], file: str, langs: set[str], limit: int | None
) -> list[tuple[str, str, str, str]]:
    """Return (language, id, query, id of the entity) of every mention; a record holds one, or a list of them."""
    chosen, counts, seen = [], dict[str, int](), set[str]()
    for number, record in found:
        place, context = f"{file}:{number}", record["context"]
        lang = context["language"]
        for mention in record["mentions"] if "mentions" in record else [value(record, "mention", place)]:
            identity = str(value(mention, "example_id", place))
            if identity in seen:
                raise InputError(f"mention {identity!r} occurs twice", where=place)
            seen.add(identity)
            if (langs and lang not in langs) or (limit is not None and counts.get(lang, 0) >= limit):
                continue
            counts[lang] = counts.get(lang, 0) + 1
            with in_form("Mewsli-X", place):
                chosen.append((lang, identity, query(context, mention, place), value(mention, "entity_id", place)))
    return chosen
