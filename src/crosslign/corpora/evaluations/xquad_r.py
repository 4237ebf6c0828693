"""LAReQA's XQuAD-R: `<lang>.json`, SQuAD with sentence breaks; questions ask one pool of sentences in all languages (docs/protocols.md)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.readers._json import document, in_form, value
from crosslign.corpora.readers._parts import TextFile, all_parts, named_parts
from crosslign.errors import InputError

log = logging.getLogger(__name__)
NAME = re.compile(r"(?:^|/)([a-z]{2})\.json$")


@dataclass(frozen=True)
class _Question:
    """A question: its id in all languages, its text, the ids of the sentences that answer it, and the number of its paragraph."""

    id: str
    text: str
    answers: tuple[str, ...]
    paragraph: str


@EVALUATIONS.register(version=3, subsets="languages")
def read(given: Given, *, part: Literal["questions", "candidates"]) -> Evaluation:
    """Return the questions, one subset a language, or the candidates.

    Questions of a paragraph are resampled as one. A candidate's text is its sentence, immediately followed by its whole paragraph, without
    line ends. Gold links stand with the questions: a question is answered, in every language, by the sentence in which its answer begins
    and by those of the paragraph that read the same. Where it begins in none, the question is left out of that language with a warning, as
    XTREME does.

    Args:
        given.langs: languages of questions and candidates; all files, when empty.
        given.limit: upper bound on the questions of a language, evenly spread; candidates stay.
        part: which of the two sets; a task needs both, read with the same `langs`.

    Raises:
        InputError: a language without a file, a file of another form, an id twice, a question that a language lacks.
    """
    if part not in ("questions", "candidates"):
        raise InputError(f"unknown part {part!r}", where=given.name, why="allowed: questions, candidates")
    found = {lang: source for (lang,), source in named_parts(all_parts(given.files), NAME, given.name).items()}
    chosen = list(given.langs) or sorted(found)
    lacking = [lang for lang in chosen if lang not in found]
    if lacking or not chosen:
        raise InputError(f"no file for {', '.join(lacking) or 'any language'}", where=given.name, why=f"found {', '.join(sorted(found))}")
    sets = {}
    for lang in chosen:
        with in_form("LAReQA", found[lang].at()):
            sets[lang] = _read(found[lang], lang)
    builder = EvaluationBuilder(given.name)
    if part == "candidates":
        for lang, (sentences, _) in sets.items():
            for identity, text in sentences.items():
                builder.item(identity, "all", "candidate", lang, text)
    else:
        _ask(builder, {lang: questions for lang, (_, questions) in sets.items()}, given.limit, given.name)
    return builder.build()


def _ask(builder: EvaluationBuilder, questions: Mapping[str, Mapping[str, _Question]], limit: int | None, name: str) -> None:
    ids = list(next(iter(questions.values())))
    every = {identity for asked in questions.values() for identity in asked}
    for lang, asked in questions.items():
        if lacking := every - set(asked):
            raise InputError(f"question {min(lacking)!r} does not exist in all languages", where=f"{name}, language {lang}")
        if unanswered := sum(not question.answers for question in asked.values()):
            log.warning("%s: %s questions in %s left out: their answers begin in no sentence", name, f"{unanswered:,}", lang)
    for lang, asked in questions.items():
        for index in evenly(len(ids), limit):
            question = asked[ids[index]]
            if not question.answers:
                continue
            builder.item(question.id, lang, "query", lang, question.text, group=question.id, cluster=question.paragraph)
            for answer in (answer for other in questions.values() for answer in other[question.id].answers):
                builder.link(lang, question.id, answer)


def _read(source: TextFile, lang: str) -> tuple[dict[str, str], dict[str, _Question]]:
    """Return the texts of candidates by their ids, and the questions by theirs."""
    sentences: dict[str, str] = {}
    questions: dict[str, _Question] = {}
    for number, (place, paragraph) in enumerate(_paragraphs(source)):
        context = value(paragraph, "context", place)
        breaks = value(paragraph, "sentence_breaks", place)
        ids = [f"{lang}:{number}:{at}" for at in range(len(breaks))]
        sentences |= {i: (context[start:end] + context).replace("\n", "") for i, (start, end) in zip(ids, breaks, strict=True)}
        for asked in value(paragraph, "qas", place):
            identity = str(value(asked, "id", place))
            if identity in questions:
                raise InputError(f"question {identity!r} occurs twice", where=place)
            start = value(value(asked, "answers", place)[0], "answer_start", place)
            answer = next((context[low:high] for low, high in breaks if low <= start < high), None)
            equal = (i for i, (low, high) in zip(ids, breaks, strict=True) if context[low:high] == answer)
            questions[identity] = _Question(identity, value(asked, "question", place), tuple(equal), str(number))
    return sentences, questions


def _paragraphs(source: TextFile) -> Iterator[tuple[str, Any]]:
    for article, entry in enumerate(value(document(source), "data", source.at())):
        for number, paragraph in enumerate(value(entry, "paragraphs", source.at())):
            yield f"{source.at()}: article {article + 1}, paragraph {number + 1}", paragraph
