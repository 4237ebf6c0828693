"""Multiple choice: XCOPA, COPA and Social IQa, JSON lines (PROTOCOLS B14)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from crosslign.corpora import EVALUATIONS
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.evaluations._json import records, value
from crosslign.corpora.readers._lines import check_text, read_lines
from crosslign.corpora.readers._parts import Part, all_parts
from crosslign.errors import InputError

ASKED = {"cause": "What was the cause?", "effect": "What happened as a result?"}
NAME = re.compile(r"(?:^|/)(train|val|test|dev)(?:\.([a-z]{2}))?\.jsonl$")


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
    questions: Mapping[str, str] | None = None,
) -> Evaluation:
    """Return one subset a language; the choices of a question share its group, label 1 marks the right one.

    The input of a choice is the premise, and the question followed by the choice. XCOPA and COPA ask for `cause` or `effect`; Social
    IQa brings its own question, three answers and, beside `<split>.jsonl`, `<split>-labels.lst` with 1, 2 or 3.

    Args:
        files: official files by name (`test.it.jsonl`, or COPA's and Social IQa's `val.jsonl`, `dev.jsonl`), or archives of them.
        corpora: none.
        name: id of the evaluation corpus.
        langs: languages to read; all, when empty. A file without a language in its name is English.
        limit: upper bound on the questions of a subset, evenly spread over the file.
        seed: not used.
        split: the file's name in front of the language.
        questions: the texts of `cause` and `effect`.

    Raises:
        InputError: no file of a language, a line of another form, a label that is no choice, unequal numbers of questions and labels.
    """
    parts = all_parts(files)
    found = {match[2] or "en": part for part in parts if (match := NAME.search(part.name)) and match[1] == split}
    chosen = list(langs) or sorted(found)
    lacking = [lang for lang in chosen if lang not in found]
    if lacking or not chosen:
        raise InputError(f"no {split} file of {', '.join(lacking) or 'any language'}", where=name, why=f"found {', '.join(sorted(found))}")
    builder = EvaluationBuilder(name)
    for lang in chosen:
        labels = next((part for part in parts if part.name.endswith(f"{split}-labels.lst")), None)
        items = list(records(found[lang]))
        keys = [line.strip() for _, line in read_lines(labels)] if labels else None
        if keys is not None and len(keys) != len(items):
            why = f"{len(items):,} questions, {len(keys):,} labels"
            raise InputError("questions and labels have unequal numbers of lines", where=found[lang].at(), why=why)
        for index in evenly(len(items), limit):
            number, record = items[index]
            _add(builder, lang, found[lang], number, record, {**ASKED, **(questions or {})}, keys[index] if keys else None)
    return builder.build()


def _add(
    builder: EvaluationBuilder, lang: str, part: Part, number: int, record: dict[str, Any], asked: Mapping[str, str], key: str | None
) -> None:
    place = part.at(number)
    if "premise" in record:
        premise, kind = value(record, "premise", place), value(record, "question", place)
        if kind not in asked:
            raise InputError(f"unknown kind of question {kind!r}", where=place, why=f"allowed: {', '.join(asked)}")
        question, choices = asked[kind], [value(record, f"choice{at}", place) for at in (1, 2)]
        right = value(record, "label", place)
    else:
        premise, question = value(record, "context", place), value(record, "question", place)
        choices = [value(record, f"answer{letter}", place) for letter in "ABC"]
        right = int(key) - 1 if key is not None and key.isdigit() else value(record, "label", place)
    if right not in range(len(choices)):
        raise InputError("the label is none of the choices", where=place, why=f"found {right!r}, {len(choices)} choices")
    check_text(premise, part, number, "premise")
    for at, choice in enumerate(choices):
        second = f"{question} {check_text(choice, part, number, 'choice')}"
        builder.item(f"{number}:{at + 1}", lang, "choice", lang, premise, pair_text=second, label=[float(at == right)], group=str(number))
