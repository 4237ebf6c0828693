"""Retrieval of modern prose: the sentences of the project's own graded pairs, aligned over languages."""

from __future__ import annotations

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation
from crosslign.corpora.evaluations._aligned import Groups, retrieval
from crosslign.corpora.evaluations.sts_tsv import grade_of
from crosslign.corpora.written import STS_COLUMNS, files_by_lang, read_aligned


@EVALUATIONS.register(version=1, subsets="languages")
def read(given: Given, *, pivot: str = "en", paraphrase: float = 4.0, split: str = "test") -> Evaluation:
    """Return one subset a language: its sentences (source) against the same ones in the pivot language (target).

    The second sentence of a pair joins only below the grade `paraphrase`: from there on it says what the first
    one says, and finding it would be no error.

    Args:
        given.files: `sts_<lang>.tsv` by name.
        given.langs: languages, the pivot among them or not; all files, when empty.
        given.seed: draws order and choice.
        pivot: the language with which all others are paired.
        paraphrase: grade from which two sentences mean the same.
        split: name of the split.

    Raises:
        InputError: a malformed line, or an item that a language lacks.
    """
    paths = files_by_lang(given.files, "sts", sorted({*given.langs, pivot}) if given.langs else [], given.name)
    aligned = read_aligned(paths, STS_COLUMNS)
    reference = next(iter(aligned))
    groups: Groups = {}
    for item in aligned[reference]:
        columns = ("first", "second") if grade_of(aligned[reference], item, paths[reference]) < paraphrase else ("first",)
        for column in columns:
            groups[f"{item}:{column}"] = {lang: items[item][1][column] for lang, items in aligned.items()}
    return retrieval(given.name, groups, given.langs or sorted(aligned), pivot, given.limit, given.seed, split)
