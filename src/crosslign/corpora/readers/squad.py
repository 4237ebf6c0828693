"""Questions with the sentences that hold their answers, from files in the form of SQuAD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._json import document, in_form
from crosslign.corpora.readers._parts import Members, TextFile, parts_of
from crosslign.corpora.readers._prose import sentences
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError


@READERS.register(version=3, gives="bitext")
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    file_langs: Mapping[str, str] | None = None,
    member: Members | None = None,
    answer: Literal["sentence", "paragraph", "sentence_and_paragraph"] = "sentence",
) -> Iterator[pa.Table]:
    """Yield `bitext` rows: a question, and the sentence of its paragraph in which its first answer begins.

    Sentences are those of `sentence_breaks` (character ranges, as LAReQA gives them) where the file has them, else cut
    by the rules of running text. Questions without an answer, and answers that begin in no sentence, are left out.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<id of the question>`.
        langs: languages to read.
        file_langs: language by file name; needed when there are several languages.
        member: member of each file that is an archive.
        answer: what answers: the `sentence`, the `paragraph`, or both, the sentence immediately followed by its paragraph, without line
            ends, as XTREME trains and LAReQA evaluates.

    Raises:
        InputError: not JSON, not of that form, or a file whose language nobody said.
    """
    parts = parts_of(files, langs, member, file_langs, corpus)
    columns = ("id", "a_lang", "a_text", "b_lang", "b_text")
    yield from tables((row for part in parts for row in _rows(part, corpus, langs, answer)), "bitext", columns)


def _rows(part: TextFile, corpus: str, langs: Sequence[str], answer: str) -> Iterator[tuple[str, ...]]:
    said = part.langs or tuple(langs)
    if len(said) != 1:
        raise InputError(f"the language of {part.name!r} is unknown", where=corpus, do="Name it in `file_langs`")
    if said[0] not in langs:
        return
    with in_form("SQuAD", part.at()):
        for paragraph, question in _questions(part):
            text, answers = paragraph["context"], question["answers"]
            if answers:
                start = int(answers[0]["answer_start"])
                if not 0 <= start < len(text):
                    why = f"question {question['id']}: character {start:,} of {len(text):,}"
                    raise InputError("an answer begins outside its paragraph", where=part.at(), why=why)
                sentence = "" if answer == "paragraph" else _sentence_at(paragraph, start)
                found = {"sentence": sentence, "paragraph": text, "sentence_and_paragraph": (sentence + text).replace("\n", "")}[answer]
                asked, told = " ".join(question["question"].split()), " ".join(found.split())
                if asked and told and (sentence or answer == "paragraph"):
                    yield f"{corpus}:{part.name}:{question['id']}", said[0], asked, said[0], told


def _questions(part: TextFile) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for article in document(part)["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield paragraph, question


def _sentence_at(paragraph: Mapping[str, Any], start: int) -> str:
    """Return the sentence of a paragraph that holds its character number `start`, as it stands there; empty where none does."""
    text: str = paragraph["context"]
    for first, last in paragraph.get("sentence_breaks", ()) or _breaks(text):
        if first <= start < last:
            return text[first:last]
    return ""


def _breaks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of running text begins and ends."""
    end = 0
    for sentence in sentences(text):
        words = sentence.split()
        first = end = text.index(words[0], end)
        for word in words:
            end = text.index(word, end) + len(word)
        yield first, end
