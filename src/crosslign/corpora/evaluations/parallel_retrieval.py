"""Retrieval in Tatoeba's form, cut from a multiway corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa

from crosslign.corpora import EVALUATIONS
from crosslign.corpora.evaluation import Evaluation
from crosslign.corpora.evaluations._aligned import from_multiway, retrieval, saying
from crosslign.options import Positive, Texts


@EVALUATIONS.register(version=1, subsets="languages")
def read(
    files: Mapping[str, Path],
    corpora: Mapping[str, pa.Table],
    name: str,
    langs: Sequence[str],
    limit: int | None,
    seed: int,
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
        files: none.
        corpora: one multiway corpus, one bitext, or one of labelled pairs, whose first sentences count.
        name: id of the evaluation corpus.
        langs: languages; the pivot among them or not.
        limit: upper bound on `size`.
        seed: draws the groups.
        size: number of groups.
        pivot: the language that all others are paired with.
        versions: versions to prefer, best first, by language.
        split: name of the split.
        order: `drawn` by the seed, or the first groups as the corpus has them.
        sentences: these alone, named by their text in the pivot language, in this order.

    Raises:
        InputError: no group has all languages; a named sentence is not there.
    """
    groups = from_multiway(corpora, versions or {}, name)
    chosen = saying(groups, sentences, langs, pivot, name) if sentences else list(groups) if order == "corpus" else None
    return retrieval(name, groups, langs, pivot, min(size, limit or size), seed, split, chosen)
