"""Training questions with answers to choose from, as COPA and Social IQa have them (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._choices import ASKED, files_of_split, read_questions
from crosslign.corpora.readers._parts import all_parts
from crosslign.corpora.readers._tables import tables

COLUMNS = ("id", "a_lang", "a_text", "b_lang", "b_text", "label", "group")


@READERS.register(version=2, gives="labelled")
def read(
    files: Mapping[str, Path], corpus: str, langs: Sequence[str], *, split: str = "train", questions: Mapping[str, str] | None = None
) -> Iterator[pa.Table]:
    """Yield `labelled` rows, one a choice: the premise with the question, the choice, and 1 for the right one, else 0, as in XTREME.

    The choices of a question share its group, `<file>:<line>`.

    Args:
        files: official files by name, or archives of them.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>:<choice>`.
        langs: languages to read.
        split: the file's name in front of the language.
        questions: the texts of `cause` and `effect`.

    Raises:
        InputError: as `crosslign.corpora.readers._choices` says.
    """
    parts = all_parts(files)
    rows = (
        (f"{corpus}:{group}:{at + 1}", lang, question.asked, lang, choice, [float(at == question.right)], group)
        for lang, part in files_of_split(parts, split, langs, corpus).items()
        for question in read_questions(part, parts, split, {**ASKED, **(questions or {})})
        for group in [f"{part.name}:{question.number}"]
        for at, choice in enumerate(question.choices)
    )
    yield from tables(rows, "labelled", COLUMNS)
