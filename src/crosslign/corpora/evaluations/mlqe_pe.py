"""Quality estimation of WMT: `*.df.short.tsv` of mlqe-pe, or the three files of its 2021 test; scored by z_mean (docs/protocols.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._graded import Graded, add_graded, grade_lines, grade_of
from crosslign.corpora.readers._lines import check_text, first_missing, lines_of, place_of, read_lines
from crosslign.corpora.readers._parts import TextFile, all_parts
from crosslign.errors import InputError

TABLE = re.compile(r"(?:^|/)\w+\.([a-z]{2})([a-z]{2})\.df\.short\.(tsv)$")
LINES = re.compile(r"(?:^|/)([a-z]{2})-([a-z]{2})-test21/(?:goldlabels/)?test21\.(src|mt|da)$")
COLUMNS = ("original", "translation")
DOCUMENTS = ".doc_ids"
"""Ending of the file beside a table, in its folder of an archive, that names the document of each row."""


@EVALUATIONS.register(version=2, subsets="pairs")
def read(given: Given, *, score: str = "z_mean") -> Evaluation:
    """Return one subset a pair, such as `en-de`: source sentence (first), machine translation (second), and the mean of its scores.

    Sentences of one document are resampled together where the archive names documents (`dev.doc_ids`); those of 2021 name none.

    Args:
        given.files: official archives of one split, or the tables inside. The archives of the 2021 test hold `test21.src`, `test21.mt` and
            `goldlabels/test21.da`, the mean of the standardised scores.
        score: column of the gold score in a table.

    Raises:
        InputError: no file of these languages, a column or file that is missing, a wrong number of columns or lines, a score that is no
            number, two tables of one pair.
    """
    found: dict[tuple[str, str], dict[str, TextFile]] = {}
    parts = all_parts(given.files)
    documents = {part.name: part for part in parts if part.member.endswith(DOCUMENTS)}
    for part in parts:
        match = TABLE.search(part.name) or LINES.search(part.name)
        if match and (not given.langs or {match[1], match[2]} <= set(given.langs)):
            kinds = found.setdefault((match[1], match[2]), {})
            if match[3] in kinds:
                raise InputError(f"two files for {match[1]}-{match[2]}", where=given.name, do="Name the files of only one split in `files`")
            kinds[match[3]] = part
            if match[3] == "tsv" and (named := documents.get(part.name[: match.start(1) - 1] + DOCUMENTS)):
                kinds[DOCUMENTS] = named
    if not found:
        raise InputError("no scores for these languages", where=given.name, why="expected names like dev.ende.df.short.tsv")
    builder = EvaluationBuilder(given.name)
    for pair, kinds in sorted(found.items()):
        graded = _of_table(kinds["tsv"], kinds.get(DOCUMENTS), score) if "tsv" in kinds else _of_lines(kinds, "-".join(pair))
        add_graded(builder, "-".join(pair), pair, graded, given.limit)
    return builder.build()


def _graded(
    part: TextFile, number: int, original: str, translation: str, score: tuple[str, str], document: str | None = None
) -> list[Graded]:
    """Return the pair of one line, or nothing where it was not scored."""
    grade = grade_of(*score)
    if grade is None:
        return []
    first, second = (check_text(text, part, number, "sentence") for text in (original, translation))
    return [Graded(str(number), first, second, grade, document)]


def _of_table(part: TextFile, documents: TextFile | None, score: str) -> list[Graded]:
    graded, positions, width = list[Graded](), list[int](), 0
    rows = list(read_lines(part))
    named = lines_of(documents) if documents else []
    if documents and len(named) != len(rows):
        why = f"{part.name} has {len(rows):,}, {documents.name} has {len(named):,}"
        raise InputError(
            "a table and its documents have unequal numbers of lines",
            where=first_missing({part: len(rows), documents: len(named)}),
            why=why,
        )
    for number, line in rows:
        fields = line.split("\t")
        if not positions:
            positions, width = [place_of(column, fields, part) for column in (*COLUMNS, score)], len(fields)
            continue
        if len(fields) != width:
            raise InputError("wrong number of columns", where=part.at(number), why=f"found {len(fields)}, expected {width}")
        original, translation, value = (fields[position] for position in positions)
        document = named[number - 1] if named else None
        graded += _graded(part, number, original, translation, (value, part.at(number)), document)
    return graded


def _of_lines(kinds: Mapping[str, TextFile], pair: str) -> list[Graded]:
    lacking = [kind for kind in ("src", "mt", "da") if kind not in kinds]
    if lacking:
        raise InputError(f"file test21.{lacking[0]} of {pair} is missing", where=next(iter(kinds.values())).at())
    sides = {kind: list(read_lines(part)) for kind, part in kinds.items() if kind != "da"}
    sides["da"] = grade_lines(kinds["da"], len(sides["src"]))
    if len({len(lines) for lines in sides.values()}) != 1:
        why = ", ".join(f"test21.{kind} has {len(lines):,}" for kind, lines in sorted(sides.items()))
        raise InputError(
            "files have unequal numbers of lines", where=first_missing({kinds[kind]: len(lines) for kind, lines in sides.items()}), why=why
        )
    graded: list[Graded] = []
    for (number, original), (_, translation), (_, value) in zip(sides["src"], sides["mt"], sides["da"], strict=True):
        graded += _graded(kinds["src"], number, original, translation, (value, kinds["da"].at(number)))
    return graded
