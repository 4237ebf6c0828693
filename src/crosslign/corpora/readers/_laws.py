"""Laws of MultiEURLEX: JSON lines of texts by language and EUROVOC concepts (docs/protocols.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.corpora.readers._json import in_form, records, value
from crosslign.corpora.readers._lines import check_text
from crosslign.corpora.readers._parts import TextFile, all_parts, named_parts
from crosslign.errors import InputError

FIRST, LAST = 100_142, 100_162
"""EUROVOC numbers its 21 concepts of level 1 without gaps; class c is the concept FIRST + c."""


@dataclass(frozen=True)
class Law:
    """One law: its id, its text in each language that has one, and its classes, ascending."""

    id: str
    texts: Mapping[str, str]
    classes: list[int]


def read_laws(files: Mapping[str, Path], split: str, where: str) -> Iterator[Law]:
    """Yield the laws of `<split>.jsonl`, or of an archive that holds it; laws without a class are left out.

    Raises:
        InputError: no such file, a line of another form, a concept that is none of level 1, a law twice.
    """
    source = named_parts(all_parts(files), re.compile(rf"(?:^|/){re.escape(split)}\.jsonl$"), where).get(())
    if source is None:
        raise InputError(f"file {split}.jsonl is missing", where=where, why=f"found {sorted(files)}")
    seen: set[str] = set()
    for number, record in records(source, ("celex_id", "text", "eurovoc_concepts.level_1")):
        with in_form("MultiEURLEX", source.at(number)):
            law = _law(record, source, number)
        if law.id in seen:
            raise InputError(f"law {law.id!r} occurs twice", where=source.at(number))
        seen.add(law.id)
        if law.classes:
            yield law


def _law(record: Mapping[str, Any], source: TextFile, number: int) -> Law:
    texts = {lang: text for lang, text in record["text"].items() if text and text.strip()}
    classes = _classes(value(record, "eurovoc_concepts.level_1", source.at(number)), source, number)
    return Law(check_text(record["celex_id"], source, number, "celex_id"), texts, classes)


def _classes(concepts: Sequence[str], source: TextFile, number: int) -> list[int]:
    classes = []
    for concept in concepts:
        if not str(concept).isdecimal() or not FIRST <= int(concept) <= LAST:
            raise InputError(f"{concept!r} is not a level 1 concept", where=source.at(number), why=f"expected {FIRST} to {LAST}")
        classes.append(int(concept) - FIRST)
    return sorted(classes)
