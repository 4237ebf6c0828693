"""Quality estimation of WMT 2021: `*.df.short.tsv` of mlqe-pe, scored by z_mean (PROTOCOLS B10)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import EVALUATIONS
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._graded import Graded, add_graded, grade_of
from crosslign.corpora.readers._lines import check_text, read_lines
from crosslign.corpora.readers._parts import Part, all_parts
from crosslign.errors import InputError
from crosslign.registry import nearest

NAME = re.compile(r"(?:^|/)\w+\.([a-z]{2})([a-z]{2})\.df\.short\.tsv$")
COLUMNS = ("original", "translation")


@EVALUATIONS.register
def read(
    files: Mapping[str, Path],
    corpora: Mapping[str, pa.Table],
    name: str,
    langs: Sequence[str],
    limit: int | None,
    seed: int,
    *,
    score: str = "z_mean",
) -> Evaluation:
    """Return one subset a pair, such as `en-de`: source sentence (first), machine translation (second), and the mean of its scores.

    Args:
        files: official archives, or the tables inside.
        corpora: none.
        name: id of the evaluation corpus.
        langs: pairs are read whose languages are among these; all, when empty.
        limit: upper bound on the pairs of a subset, evenly spread over the file.
        seed: not used.
        score: column of the gold score.

    Raises:
        InputError: no table of these languages, a column that is missing, a wrong number of columns, a score that is no number, two
            tables of one pair.
    """
    tables: dict[tuple[str, str], Part] = {}
    for part in all_parts(files):
        match = NAME.search(part.name)
        if match and (not langs or {match[1], match[2]} <= set(langs)):
            if (match[1], match[2]) in tables:
                raise InputError(f"two tables of {match[1]}-{match[2]}", where=name, why="name the files of one split in `files`")
            tables[match[1], match[2]] = part
    if not tables:
        raise InputError("no table of these languages", where=name, why="expected names like dev.ende.df.short.tsv")
    builder = EvaluationBuilder(name)
    for pair, part in sorted(tables.items()):
        add_graded(builder, "-".join(pair), pair, _scored(part, score), limit)
    return builder.build()


def _scored(part: Part, score: str) -> list[Graded]:
    found, positions, width = [], list[int](), 0
    for number, line in read_lines(part):
        fields = line.split("\t")
        if not positions:
            lacking = next((column for column in (*COLUMNS, score) if column not in fields), None)
            if lacking:
                raise InputError(f"no column {lacking!r}", where=part.at(1), why=nearest(lacking, fields))
            positions, width = [fields.index(column) for column in (*COLUMNS, score)], len(fields)
            continue
        if len(fields) != width:
            raise InputError("wrong number of columns", where=part.at(number), why=f"found {len(fields)}, expected {width}")
        original, translation, value = (fields[position] for position in positions)
        grade = grade_of(value, part.at(number))
        if grade is not None:
            first, second = (check_text(text, part, number, "sentence") for text in (original, translation))
            found.append(Graded(str(number), first, second, grade))
    return found
