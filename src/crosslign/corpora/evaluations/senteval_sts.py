"""STS12 to STS16: `STS.input.<subset>.txt` with `STS.gs.<subset>.txt`, as the bundle of SentEval holds them (docs/protocols.md)."""

from __future__ import annotations

import re
from typing import Annotated

from crosslign.console import number_of
from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._graded import Graded, add_graded, grade_lines, grade_of
from crosslign.corpora.readers._lines import check_text, first_missing, read_lines
from crosslign.corpora.readers._parts import TextFile, all_parts
from crosslign.errors import InputError
from crosslign.options import Ge, Le

NAME = re.compile(r"(?:STS(?:20)?(?P<year>\d\d)-en-test/|^|/)STS(?:20(?P<own>\d\d))?\.(?P<half>input|gs)\.(?P<subset>[A-Za-z.-]+)\.txt$")
"""As SentEval's bundle has them, in a folder a year, or as SemEval gave them out: with the year in the name, or, before 2016, without."""
WHOLE = frozenset({"ALL"})
"""Files that repeat the others of their year."""
UNRELEASED = frozenset({(13, "SMT")})
"""Parts whose sentences nobody may pass on: the bundle has their grades alone."""


@EVALUATIONS.register(version=1)
def read(given: Given, *, year: Annotated[int, Ge(12), Le(16)]) -> Evaluation:
    """Return one subset a file pair of one year, such as `MSRpar`; the score of a gold link is the grade, 0 to 5.

    A pair whose line of the gold file is blank was not graded and is left out (STS15, STS16). So is SMT of STS13, whose sentences were
    never released.

    Args:
        given.files: official files, or archives of them: in a folder `STS<year>-en-test`, or as SemEval gave them out, with the year in
            their own names (`STS2016.input.headlines.txt`), or without any (`STS.input.headlines.txt`), where no name says a year.
        given.langs: English, whatever it says.
        year: 12 to 16.

    Raises:
        InputError: no file of the year, an input without gold or the reverse, unequal numbers of lines, a line that is not a pair or grade.
    """
    matches = [(part, match) for part in all_parts(given.files) if (match := NAME.search(part.name)) and match["subset"] not in WHOLE]
    years = [match["year"] or match["own"] for _, match in matches]
    halves: dict[str, dict[str, TextFile]] = {}
    for (part, match), named in zip(matches, years, strict=True):
        if named == str(year) or not any(years):
            if match["half"] in halves.setdefault(match["subset"], {}):
                both = f"{halves[match['subset']][match['half']].name} and {part.name}"
                raise InputError(
                    f"two {match['half']} files for {match['subset']}", where=given.name, why=both, do="Name the files of only one year"
                )
            halves[match["subset"]][match["half"]] = part
    if not halves:
        raise InputError(
            f"no files for STS{year}",
            where=given.name,
            why=f"expected STS{year}-en-test/STS.input.headlines.txt, STS20{year}.input.headlines.txt or STS.input.headlines.txt",
        )
    builder = EvaluationBuilder(given.name)
    for subset, found in sorted(halves.items()):
        if (year, subset) in UNRELEASED and "input" not in found:
            continue
        if len(found) != 2:
            raise InputError(f"{subset} has only its {next(iter(found))} file", where=given.name)
        add_graded(builder, subset, ("en", "en"), _graded(found["input"], found["gs"]), given.limit)
    return builder.build()


def _graded(inputs: TextFile, grades: TextFile) -> list[Graded]:
    pairs = list(read_lines(inputs))
    scores = grade_lines(grades, len(pairs))
    if len(pairs) != len(scores):
        why = f"{number_of(len(pairs), 'pair')}, {number_of(len(scores), 'grade')}"
        raise InputError(
            "input and gold have unequal numbers of lines", where=first_missing({inputs: len(pairs), grades: len(scores)}), why=why
        )
    graded = []
    for (number, line), (_, score) in zip(pairs, scores, strict=True):
        grade = grade_of(score, grades.at(number), 0, 5)
        if grade is None:
            continue
        fields = line.split("\t")
        if len(fields) < 2:
            raise InputError("a line must have two sentences", where=inputs.at(number), why=f"found {len(fields)}")
        first, second = (check_text(field, inputs, number, "sentence") for field in fields[:2])
        graded.append(Graded(str(number), first, second, grade))
    return graded
