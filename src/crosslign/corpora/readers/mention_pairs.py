"""Training pairs of Mewsli-X: a mention in Wikipedia and the description of its entity (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._json import in_form, records, value
from crosslign.corpora.readers._lines import check_text
from crosslign.corpora.readers._mentions import description, query
from crosslign.corpora.readers._parts import TextFile, all_parts
from crosslign.corpora.readers._tables import tables

KEYS = (
    *("contextual_mention.context.text", "contextual_mention.context.language", "contextual_mention.mention"),
    *("entity.entity_id", "entity.description", "entity.description_language", "entity.sentence_spans"),
)


@READERS.register(version=2, gives="bitext")
def read(files: Mapping[str, Path], corpus: str, langs: Sequence[str]) -> Iterator[pa.Table]:
    """Yield `bitext` rows: the mention with its sentence, and the description of its entity.

    Args:
        files: `wikipedia_pairs-train.jsonl` of the official build, or of the prepared copy (`mention` and `entity` as finished texts, of
            the first language named), also in an archive; read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`.
        langs: languages of the mentions; others are left out.

    Raises:
        InputError: a record of another form, a mention that lies in no sentence, an empty text.
    """
    parts = all_parts(files)
    yield from tables(
        (row for part in parts for row in _rows(part, corpus, langs)), "bitext", ("id", "a_lang", "a_text", "b_lang", "b_text")
    )


def _rows(part: TextFile, corpus: str, langs: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for number, record in records(part):
        if isinstance(record.get("mention"), str):
            asked, found = (check_text(str(value(record, key, part.at(number))), part, number, key) for key in ("mention", "entity"))
            yield f"{corpus}:{part.name}:{number}", langs[0], asked, langs[0], found
            continue
        for key in KEYS:
            value(record, key, part.at(number))
        mention, entity = record["contextual_mention"], record["entity"]
        lang = mention["context"]["language"]
        with in_form("Mewsli-X", part.at(number)):
            if lang in langs:
                asked = check_text(query(mention["context"], mention["mention"], part.at(number)), part, number, "mention")
                told = check_text(entity["description_language"], part, number, "description_language")
                yield f"{corpus}:{part.name}:{number}", lang, asked, told, description(entity)
