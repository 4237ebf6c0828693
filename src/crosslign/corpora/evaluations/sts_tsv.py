"""The project's own graded sentence pairs: similarity within a language and across two."""

from __future__ import annotations

from pathlib import Path

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.readers._fields import finite
from crosslign.corpora.written import STS_COLUMNS, Items, files_by_lang, read_aligned
from crosslign.errors import InputError
from crosslign.languages import pair_of
from crosslign.options import LangPairs


@EVALUATIONS.register(version=1, subsets="pairs")
def read(given: Given, *, pairs: LangPairs = (), split: str = "test") -> Evaluation:
    """Return subsets `de-de` for each language and one for each of `pairs`; the score of a gold link is the grade, 0 to 5.

    Args:
        given.files: `sts_<lang>.tsv` by name.
        pairs: further subsets: `en-de` has the first sentence in English and the second in German.
        split: name of the split.

    Raises:
        InputError: a malformed line, a grade outside 0 to 5, an item that a language lacks, a pair of an unknown language.
    """
    paths = files_by_lang(given.files, "sts", list(given.langs), given.name)
    aligned = read_aligned(paths, STS_COLUMNS)
    builder = EvaluationBuilder(given.name)
    for subset in dict.fromkeys([*(f"{lang}-{lang}" for lang in aligned), *pairs]):
        first, second = pair_of(subset)
        if first not in aligned or second not in aligned:
            raise InputError(f"pair {subset!r} has a language without a file", where=given.name, why=f"languages: {', '.join(aligned)}")
        items = list(aligned[first])
        for index in evenly(len(items), given.limit):
            _add(builder, subset, items[index], aligned[first], aligned[second], paths[first], split)
    return builder.build()


def grade_of(items: Items, item: str, path: Path) -> float:
    """Return the grade of an item.

    Raises:
        InputError: it is not a number from 0 to 5.
    """
    number, row = items[item]
    grade = finite(row["score"])
    if grade is None or not 0 <= grade <= 5:
        raise InputError("a grade must be a number from 0 to 5", where=f"{path}:{number}", why=f"found {row['score']!r}")
    return grade


def _add(builder: EvaluationBuilder, subset: str, item: str, first: Items, second: Items, path: Path, split: str) -> None:
    a_lang, b_lang = pair_of(subset)
    left = builder.item(f"{item}:first", subset, "first", a_lang, first[item][1]["first"], split=split, group=item)
    right = builder.item(f"{item}:second", subset, "second", b_lang, second[item][1]["second"], split=split, group=item)
    builder.link(subset, left, right, split=split, score=grade_of(first, item, path))
