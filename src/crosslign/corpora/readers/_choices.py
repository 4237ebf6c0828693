"""Questions with answers to choose from: XCOPA, COPA and Social IQa, JSON lines (docs/protocols.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosslign.console import number_of
from crosslign.corpora.readers._json import records, value
from crosslign.corpora.readers._lines import check_text, first_missing, read_lines
from crosslign.corpora.readers._parts import TextFile, named_parts
from crosslign.errors import InputError

ASKED = {"cause": "What was the cause?", "effect": "What was the effect?"}
"""As XTREME asks (third_party/run_xcopa.py, 838c13b)."""
NAME = re.compile(r"(?:^|/)(train|val|test|dev)(?:\.([a-z]{2}))?\.jsonl$")


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        number: its line in the file.
        asked: the premise, followed by the question.
        choices: the answers.
        right: place of the right answer.
        context: the premise, where several questions may have it, as in Social IQa.
    """

    number: int
    asked: str
    choices: list[str]
    right: int
    context: str | None = None


def files_of_split(parts: Sequence[TextFile], split: str, langs: Sequence[str], where: str) -> dict[str, TextFile]:
    """Return the file of each language; a file without a language in its name is English. All languages where none is named.

    Raises:
        InputError: no file of a language, or two.
    """
    found = {lang or "en": part for (of, lang), part in named_parts(parts, NAME, where).items() if of == split}
    chosen = list(langs) or sorted(found)
    lacking = [lang for lang in chosen if lang not in found]
    if lacking or not chosen:
        raise InputError(
            f"no {split} file for {', '.join(lacking) or 'any language'}", where=where, why=f"found {', '.join(sorted(found))}"
        )
    return {lang: found[lang] for lang in chosen}


def read_questions(part: TextFile, parts: Sequence[TextFile], split: str, asked: Mapping[str, str]) -> list[Question]:
    """Return the questions of a file.

    XCOPA and COPA ask for `cause` or `effect`; Social IQa brings its own question, three answers and, beside `<split>.jsonl`,
    `<split>-labels.lst` with 1, 2 or 3.

    Args:
        part: the file.
        parts: all files, the labels among them.
        split: the file's name in front of the language.
        asked: the texts of `cause` and `effect`.

    Raises:
        InputError: a line of another form, a label that is not a choice, two files of labels, unequal numbers of questions and labels.
    """
    labels = named_parts(parts, re.compile(rf"(?:^|/){re.escape(split)}-labels\.lst$"), part.at()).get(())
    items = list(records(part))
    keys = [line.strip() for _, line in read_lines(labels)] if labels else [None] * len(items)
    if len(keys) != len(items):
        why = f"{number_of(len(items), 'question')}, {number_of(len(keys), 'label')}"
        where = first_missing({part: len(items), **({labels: len(keys)} if labels else {})})
        raise InputError("questions and labels have unequal numbers of lines", where=where, why=why)
    return [_question(part, number, record, asked, key) for (number, record), key in zip(items, keys, strict=True)]


def _question(part: TextFile, number: int, record: dict[str, Any], asked: Mapping[str, str], key: str | None) -> Question:
    place = part.at(number)
    if "premise" in record:
        premise, kind = value(record, "premise", place), value(record, "question", place)
        if check_text(kind, part, number, "kind of question") not in asked:
            raise InputError(f"unknown kind of question {kind!r}", where=place, why=f"allowed: {', '.join(asked)}")
        question, choices, context = asked[kind], [value(record, f"choice{at}", place) for at in (1, 2)], None
        right = value(record, "label", place)
    else:
        premise = context = value(record, "context", place)
        question = value(record, "question", place)
        choices = [value(record, f"answer{letter}", place) for letter in "ABC"]
        right = int(key[:9]) - 1 if key is not None and key.isdecimal() else value(record, "label", place)
    if right not in range(len(choices)):
        raise InputError("the label is not one of the choices", where=place, why=f"found {right!r} for {len(choices)} choices")
    check_text(premise, part, number, "premise")
    return Question(number, f"{premise} {question}", [check_text(choice, part, number, "choice") for choice in choices], right, context)
