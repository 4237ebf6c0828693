"""SemEval-2017 task 1: `STS.input.track<n>.<xx>-<yy>.txt` with `STS.gs.…` beside it (docs/protocols.md)."""

from __future__ import annotations

import re

from crosslign.console import number_of
from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.evaluations._graded import grade_lines
from crosslign.corpora.readers._fields import finite
from crosslign.corpora.readers._lines import check_text, first_missing, read_lines
from crosslign.corpora.readers._parts import TextFile, all_parts, named_parts
from crosslign.errors import InputError
from crosslign.languages import pair_of

NAME = re.compile(r"(?:^|/)STS\.(input|gs)\.track(\d+)([ab]?)\.([a-z]{2}-[a-z]{2})\.txt$")
COLUMNS = {"ar-en": ("en", "ar"), "tr-en": ("en", "tr")}
"""Languages of the two columns where the file's name has them the other way round."""
UNGRADED_REST = frozenset({"tr-en"})
"""Tracks whose input goes on after the last grade: of track 6, 250 of 500 lines are graded."""


@EVALUATIONS.register(version=1, subsets="pairs")
def read(given: Given) -> Evaluation:
    """Return one subset a track, called by its languages (`ar-en`); track 4b, the WMT one, is `es-en-4b`.

    The score of a gold link is the grade, 0 to 5. A pair without a grade is left out.

    Raises:
        InputError: an input without grades or the reverse, more grades than pairs, a line that is not a pair, or not a grade.
    """
    paths: dict[str, dict[str, TextFile]] = {}
    for (half, _, letter, pair), part in named_parts(all_parts(given.files), NAME, given.name).items():
        if not given.langs or set(pair.split("-")) <= set(given.langs):
            paths.setdefault(pair + ("-4b" if letter == "b" else ""), {})[half] = part
    if not paths:
        raise InputError(
            "no STS 2017 track for these languages", where=given.name, why=f"files: {', '.join(sorted(given.files)) or 'none'}"
        )
    builder = EvaluationBuilder(given.name)
    for subset, halves in sorted(paths.items()):
        if len(halves) != 2:
            raise InputError(f"track {subset} has only its {next(iter(halves))} file", where=given.name)
        graded = _graded(subset, halves["input"], halves["gs"])
        for index in evenly(len(graded), given.limit):
            _add(builder, subset, *graded[index])
    return builder.build()


def _graded(subset: str, inputs: TextFile, grades: TextFile) -> list[tuple[int, str, str, float]]:
    """Return (line, first, second, grade) of every graded pair."""
    pairs = list(read_lines(inputs))
    scores = grade_lines(grades, len(pairs))
    if len(scores) > len(pairs) or (len(scores) < len(pairs) and subset not in UNGRADED_REST):
        where, why = (
            first_missing({inputs: len(pairs), grades: len(scores)}),
            f"{number_of(len(pairs), 'pair')}, {number_of(len(scores), 'grade')}",
        )
        raise InputError("input and grades have unequal numbers of lines", where=where, why=why)
    graded = []
    for (number, pair), (_, score) in zip(pairs, scores, strict=False):
        fields = pair.split("\t")
        if len(fields) < 2:
            raise InputError("a line must have two sentences", where=inputs.at(number), why=f"found {len(fields)}")
        if score.strip():
            first, second = (check_text(field, inputs, number, "sentence") for field in fields[:2])
            graded.append((number, first, second, _grade(score, grades, number)))
    return graded


def _grade(score: str, part: TextFile, number: int) -> float:
    grade = finite(score)
    if grade is None or not 0 <= grade <= 5:
        raise InputError("a grade must be a number from 0 to 5", where=part.at(number), why=f"found {score!r}")
    return grade


def _add(builder: EvaluationBuilder, subset: str, number: int, first: str, second: str, grade: float) -> None:
    a_lang, b_lang = COLUMNS.get(subset, pair_of(subset.removesuffix("-4b")))
    left = builder.item(f"{number}:first", subset, "first", a_lang, first, group=str(number))
    right = builder.item(f"{number}:second", subset, "second", b_lang, second, group=str(number))
    builder.link(subset, left, right, score=grade)
