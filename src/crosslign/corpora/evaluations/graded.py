"""Semantic similarity cut from a corpus of scored pairs: STS-B, SICK-R, KorSTS, the extension of STS 2017 (docs/protocols.md)."""

from __future__ import annotations

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._graded import Graded, add_graded

COLUMNS = ("id", "a_lang", "a_text", "b_lang", "b_text", "score")


@EVALUATIONS.register(version=1, subsets="languages")
def read(given: Given, *, subset: str | None = None, split: str = "test") -> Evaluation:
    """Return one subset a pair of languages, such as `en-de`; pairs without a score are left out.

    Args:
        given.corpora: `bitext` corpora with scores.
        subset: one name for all pairs, whatever their languages.
        split: name of the split.
    """
    builder = EvaluationBuilder(given.name)
    found: dict[tuple[str, tuple[str, str]], list[Graded]] = {}
    for corpus in given.corpora.values():
        for number, a_lang, a, b_lang, b, score in zip(*(corpus[column].to_pylist() for column in COLUMNS), strict=True):
            if score is not None and (not given.langs or {a_lang, b_lang} <= set(given.langs)):
                found.setdefault((subset or f"{a_lang}-{b_lang}", (a_lang, b_lang)), []).append(Graded(number, a, b, score))
    for (named, sides), pairs in sorted(found.items()):
        add_graded(builder, named, sides, pairs, given.limit, split)
    return builder.build()
