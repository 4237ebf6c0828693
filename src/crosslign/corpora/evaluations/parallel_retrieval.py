"""Retrieval in Tatoeba's form, cut from a multiway corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation
from crosslign.corpora.evaluations._aligned import from_multiway, retrieval, saying
from crosslign.options import Positive, Texts


@EVALUATIONS.register(version=1, subsets="languages")
def read(
    given: Given,
    *,
    size: Positive,
    pivot: str = "en",
    versions: Mapping[str, Sequence[str]] | None = None,
    split: str = "test",
    order: Literal["drawn", "corpus"] = "drawn",
    sentences: Texts = (),
) -> Evaluation:
    """Return one subset a language: its sentences (source) against the same ones in the pivot language (target).

    All subsets hold the same groups, at most min(size, limit), no sentence twice.

    Args:
        given.corpora: one multiway corpus, one bitext, or one of labelled pairs, whose first sentences count.
        given.langs: languages; the pivot among them or not.
        given.seed: draws the groups.
        size: number of groups.
        pivot: the language with which all others are paired.
        versions: versions to prefer, best first, by language.
        split: name of the split.
        order: `drawn` by the seed, or the first groups as the corpus has them.
        sentences: use only these, named by their text in the pivot language, in this order.

    Raises:
        InputError: no group has all languages; a named sentence is not there.
    """
    groups = from_multiway(given.corpora, versions or {}, given.name)
    chosen = saying(groups, sentences, given.langs, pivot, given.name) if sentences else list(groups) if order == "corpus" else None
    return retrieval(given.name, groups, given.langs, pivot, min(size, given.limit or size), given.seed, split, chosen)
