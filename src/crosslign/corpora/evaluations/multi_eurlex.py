"""MultiEURLEX: JSON lines of laws with their texts by language and EUROVOC concepts (PROTOCOLS B15)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import EVALUATIONS
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.evaluations._json import records, value
from crosslign.corpora.readers._parts import Part, all_parts
from crosslign.errors import InputError

FIRST, LAST = 100_142, 100_162
"""EUROVOC numbers its 21 concepts of level 1 without gaps; class c is the concept FIRST + c."""


@EVALUATIONS.register
def read(
    files: Mapping[str, Path],
    corpora: Mapping[str, pa.Table],
    name: str,
    langs: Sequence[str],
    limit: int | None,
    seed: int,
    *,
    split: str = "test",
) -> Evaluation:
    """Return one subset a language, one item a law that has a text in it; its labels are the classes of its concepts of level 1.

    Args:
        files: `<split>.jsonl`, or archives that hold it.
        corpora: none.
        name: id of the evaluation corpus.
        langs: languages to read; all that occur, when empty.
        limit: upper bound on the laws of a language, evenly spread over the file.
        seed: not used.
        split: train, dev or test.

    Raises:
        InputError: no such file, a line of another form, a concept that is none of level 1, a law twice, a language without texts.
    """
    source = next((part for part in all_parts(files) if re.search(rf"(?:^|/){re.escape(split)}\.jsonl(\.gz)?$", part.name)), None)
    if source is None:
        raise InputError(f"file {split}.jsonl is missing", where=name, why=f"found {sorted(files)}")
    by_lang: dict[str, list[tuple[str, str, list[int]]]] = {}
    seen: set[str] = set()
    for number, law in records(source, ("celex_id", "text", "eurovoc_concepts.level_1")):
        identity = law["celex_id"]
        if identity in seen:
            raise InputError(f"law {identity!r} occurs twice", where=source.at(number))
        seen.add(identity)
        labels = _classes(value(law, "eurovoc_concepts.level_1", ""), source, number)
        for lang, text in law["text"].items():
            if (not langs or lang in langs) and text and text.strip() and labels:
                by_lang.setdefault(lang, []).append((identity, text, labels))
    lacking = [lang for lang in langs if lang not in by_lang]
    if lacking:
        raise InputError(f"no law has a text in {lacking[0]!r}", where=name, why=f"found {', '.join(sorted(by_lang))}")
    builder = EvaluationBuilder(name)
    for lang, laws in sorted(by_lang.items()):
        for index in evenly(len(laws), limit):
            identity, text, labels = laws[index]
            builder.item(f"{lang}:{identity}", lang, "sentence", lang, text, label=labels, group=identity)
    return builder.build()


def _classes(concepts: Sequence[str], source: Part, number: int) -> list[int]:
    classes = []
    for concept in concepts:
        if not str(concept).isdigit() or not FIRST <= int(concept) <= LAST:
            raise InputError(f"{concept!r} is no concept of level 1", where=source.at(number), why=f"they are {FIRST} to {LAST}")
        classes.append(int(concept) - FIRST)
    return sorted(classes)
