"""Mewsli-X: mentions in WikiNews and one million descriptions of entities (docs/protocols.md).

JSON lines of the official build, or of the prepared copy at the hub (izhx/mewsli-x): there, a file a language holds each mention's finished
query (`mention`) and `entity_id`, and entities have `entity_id` and a finished `description`, the columns that the copy's own evaluation
script names (izhx/nlu-evals, scripts and engine/run_retrieval.py at b8193ba).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.readers._json import in_form, records, value
from crosslign.corpora.readers._lines import check_text
from crosslign.corpora.readers._mentions import description, query
from crosslign.corpora.readers._parts import TextFile, all_parts, named_parts
from crosslign.errors import InputError

ENTITIES = re.compile(r"candidate(?:_set)?_entities\.jsonl$")
MENTIONS = re.compile(r"wikinews_mentions-(?:(?P<lang>[a-z]{2,3})-)?(?P<split>\w+)\.jsonl$")
Chosen = tuple[str, str, str, str, str | None]
"""Language, id, query, id of the entity and document of a mention."""
UNKNOWN = "und"
"""Language of a prepared description: the copy does not tell it (BCP 47)."""


@EVALUATIONS.register(version=3, subsets="languages")
def read(given: Given, *, part: Literal["mentions", "entities"], split: str = "test") -> Evaluation:
    """Return the mentions (queries, one subset a language) or the entities (candidates).

    A query is the mention, a colon, and the sentence that it stands in, with the mention in braces; a candidate is the sentences of the
    entity's description, joined by spaces. A mention whose entity is not a candidate can be checked only where both sets meet: there gold
    that names no item is an error. Mentions of a document are resampled as one; the prepared copy names no documents.

    Args:
        given.files: `wikinews_mentions-<split>.jsonl` and `candidate_set_entities.jsonl`, or `wikinews_mentions-<lang>-<split>.jsonl` and
            `candidate_entities.jsonl` as prepared; gzip, in an archive, or as they are.
        given.langs: languages of the mentions; all, when empty. Entities stay whole.
        given.limit: upper bound on the mentions of a language, from the first, and on 100 times as many entities beside the gold ones.
        part: which of the two sets.
        split: dev or test.

    Raises:
        InputError: a file is missing, a record of another form, an id twice, a mention that lies in no sentence.
    """
    parts = all_parts(given.files)
    mentions = [(p, lang or "") for (lang, of), p in named_parts(parts, MENTIONS, given.name).items() if of == split]
    entities = named_parts(parts, ENTITIES, given.name).get(())
    if not mentions or entities is None:
        lacking = "candidate_set_entities.jsonl" if mentions else f"wikinews_mentions-{split}.jsonl"
        raise InputError(f"file {lacking} is missing", where=given.name, why=f"found {sorted(p.name for p in parts)}")
    chosen: list[Chosen] = []
    for file, lang in mentions:
        if not lang:
            found = list(records(file, ("context.text", "context.language")))
            chosen += _mentions(found, file.at(), set(given.langs), given.limit)
        elif not given.langs or lang in given.langs:
            chosen += _prepared(file, lang, given.limit)
    builder = EvaluationBuilder(given.name)
    if part == "mentions":
        for lang, identity, text, entity, document in chosen:
            builder.item(identity, lang, "query", lang, text, cluster=document)
            builder.link(lang, identity, entity)
        return builder.build()
    _add_entities(builder, entities, {entity for *_, entity, _ in chosen}, None if given.limit is None else 100 * given.limit)
    return builder.build()


def _add_entities(builder: EvaluationBuilder, file: TextFile, wanted: set[str], room: int | None) -> None:
    """Add the first `room` entities, all when None, and those that are wanted."""
    seen = set[str]()
    for number, record in records(file, ("entity_id", "description")):
        identity = str(record["entity_id"])
        if identity in seen:
            raise InputError(f"entity {identity!r} occurs twice", where=file.at(number))
        seen.add(identity)
        if identity in wanted or room is None or len(seen) <= room:
            with in_form("Mewsli-X", file.at(number)):
                lang = check_text(record.get("description_language", UNKNOWN), file, number, "description_language")
                builder.item(identity, "all", "candidate", lang, description(record))


def _prepared(file: TextFile, lang: str, limit: int | None) -> list[Chosen]:
    """Return the mentions of a prepared file, numbered by its lines: it has no ids."""
    rows = islice(records(file, ("mention", "entity_id")), limit)
    return [(lang, f"{lang}-{number}", str(record["mention"]), str(record["entity_id"]), None) for number, record in rows]


def _mentions(found: Sequence[tuple[int, dict[str, Any]]], file: str, langs: set[str], limit: int | None) -> list[Chosen]:
    """Return every mention; a record holds one, or a list of them, and is its own document where it names none."""
    chosen, counts, seen = list[Chosen](), dict[str, int](), set[str]()
    for number, record in found:
        place, context = f"{file}:{number}", record["context"]
        with in_form("Mewsli-X", place):
            lang = str(context["language"])
            document = f"{lang}:{context.get('document_id') or f'record {number}'}"
            for mention in record["mentions"] if "mentions" in record else [value(record, "mention", place)]:
                identity = str(value(mention, "example_id", place))
                if identity in seen:
                    raise InputError(f"mention {identity!r} occurs twice", where=place)
                seen.add(identity)
                if (langs and lang not in langs) or (limit is not None and counts.get(lang, 0) >= limit):
                    continue
                counts[lang] = counts.get(lang, 0) + 1
                chosen.append((lang, identity, query(context, mention, place), str(value(mention, "entity_id", place)), document))
    return chosen
