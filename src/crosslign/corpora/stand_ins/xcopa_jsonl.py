"""Synthetic data for XCOPA: questions with two answers of one language, as JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._choices import copa_lines
from crosslign.corpora.stand_ins._sentences import triplets_of

QUESTIONS = 80
"""Questions of a file at most."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `val.<language>.jsonl` or `test.<language>.jsonl`: every other triplet."""
    split, lang, _ = name.split(".")
    return copa_lines(triplets_of(sentences)[split == "test" :: 2][:QUESTIONS], lang)
