"""Synthetic data for SQuAD 1.1 and for XQuAD-R of LAReQA: paragraphs, questions, and where their answers begin."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._sentences import Triplet, text_in, triplets_of

LANGUAGE = re.compile(r"([a-z]{2})\.json")
SENTENCES = 4
"""Sentences of a paragraph; one question asks for each."""
QUESTIONS = 32
"""Questions of a language of XQuAD-R at most."""


def _paragraph(triplets: Sequence[Triplet], lang: str, first: int) -> dict[str, Any]:
    context, breaks, asked = "", [], []
    for at, triplet in enumerate(triplets, start=first):
        start, answer = len(context), text_in(triplet.premise, lang)
        context += answer + " "
        breaks.append([start, start + len(answer)])
        question = text_in(triplet.entailed, lang).rstrip(".。।") + "?"
        asked.append({"id": f"{at:08x}", "question": question, "answers": [{"text": answer.split()[0], "answer_start": start}]})
    return {"context": context.rstrip(), "qas": asked, "sentence_breaks": breaks}


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `<language>.json` with sentence breaks, or a file of SQuAD without them, in English.

    What follows from a premise is the question, the premise its answer.
    """
    match = LANGUAGE.fullmatch(name)
    lang, triplets = (match[1], triplets_of(sentences)[:QUESTIONS]) if match else ("en", triplets_of(sentences))
    paragraphs = [_paragraph(triplets[at : at + SENTENCES], lang, at) for at in range(0, len(triplets), SENTENCES)]
    if not match:
        paragraphs = [{key: paragraph[key] for key in ("context", "qas")} for paragraph in paragraphs]
    data = {"data": [{"title": "Written", "paragraphs": paragraphs}], "version": "1.1"}
    return json.dumps(data, ensure_ascii=False).encode("utf-8")
