"""STS17 and STS22 as MTEB publishes them: JSON lines, a JSON array or Parquet of sentence1, sentence2, score, lang (docs/protocols.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._graded import Graded, add_graded, grade_of
from crosslign.corpora.readers._json import records
from crosslign.corpora.readers._lines import check_text
from crosslign.corpora.readers._parts import TextFile, all_parts
from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.options import MinLen, Schema
from crosslign.registry import nearest

PAIR = re.compile(r"[a-z]{2,3}(-[a-z]{2,3})?")
FORMS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")
SIDES = ("sentence1", "sentence2")


@EVALUATIONS.register(version=1, subsets="languages")
def read(
    given: Given,
    *,
    subsets: Annotated[Sequence[Annotated[str, Schema(pattern="^[a-z]{2,3}(-[a-z]{2,3})?$")]], MinLen(1)] = (),
    low: float = 0.0,
    high: float = 5.0,
    empty_as_space: bool = False,
) -> Evaluation:
    """Return one subset for each value of `lang`, called by it (`en-de`; `en` is a pair within English).

    A row without a score is left out. Where rows have no `lang`, it is the name of the file or of its folder.

    Args:
        subsets: subsets that must exist; others are left out. Empty: all.
        low, high: range of the scores.
        empty_as_space: read an empty sentence as one space, instead of refusing it: the first version of MTEB's STS22 encodes articles
            without text,
            and its sizes and published figures count them. BERT's and XLM-R's tokenizers make no token of a space.

    Raises:
        InputError: a row without sentences, a score that is not a number in that range, a subset that is not there, no pair at all.
    """
    found: dict[str, list[Graded]] = {}
    for part in all_parts(given.files):
        for number, row in _records(part):
            pair = str(row.get("lang") or _named(part))
            if (subsets and pair not in subsets) or (given.langs and not set(_sides(pair)) <= set(given.langs)):
                continue
            grade = grade_of("" if row.get("score") is None else str(row["score"]), part.at(number), low, high)
            if grade is not None:
                first, second = (_text(row, side, part, number, empty_as_space) for side in SIDES)
                found.setdefault(pair, []).append(Graded(f"{Path(part.name).name}:{number}", first, second, grade))
    lacking = next((pair for pair in subsets if pair not in found), None)
    if lacking:
        raise InputError(f"no pairs for {lacking!r}", where=given.name, why=nearest(lacking, list(found)))
    if not found:
        why = f"files: {', '.join(sorted(given.files)) or 'none'}; read are {', '.join(FORMS)}"
        raise InputError("no pairs with a score for these languages", where=given.name, why=why)
    builder = EvaluationBuilder(given.name)
    for pair, graded in sorted(found.items()):
        add_graded(builder, pair, _sides(pair), graded, given.limit)
    return builder.build()


def _text(row: Mapping[str, Any], side: str, part: TextFile, number: int, empty_as_space: bool) -> str:
    text = row.get(side) or ""
    if not isinstance(text, str):
        raise InputError(f"{side} is not text", where=part.at(number), why=f"found {text!r:.80}")
    return " " if empty_as_space and not text.strip() else check_text(text, part, number, side)


def _sides(pair: str) -> tuple[str, str]:
    first, _, second = pair.partition("-")
    return first, second or first


def _named(part: TextFile) -> str:
    path = Path(part.member or part.name)
    for candidate in (path.name.split(".")[0], path.parent.name):
        if PAIR.fullmatch(candidate):
            return candidate
    raise InputError("a row has no `lang`, and neither the file's nor the folder's name has a language", where=part.at())


def _records(part: TextFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and content of each row of a data file, and nothing of another file."""
    if not part.name.endswith(FORMS):
        return
    if part.name.endswith(".parquet"):
        try:
            rows = read_rows(part.path).to_pylist()
        except UnicodeDecodeError as error:
            raise InputError("text is not valid UTF-8", where=part.at(), why=str(error)) from error
        yield from enumerate(rows, start=1)
        return
    yield from records(part)
