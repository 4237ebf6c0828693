"""Synthetic data for MUSE's dictionaries: words of a sentence beside those of its translation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import pair_in
from crosslign.languages import counts_characters

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
MARKED = re.compile(r"[^\s\d.,;:!?()\"“”«»。、，！？]+")
BROKEN = "three words here"
"""The last line: a translation of two words, which the form cannot hold."""


def _words(text: str, lang: str) -> list[str]:
    """Return the words of a text; pairs of characters where words are not set apart."""
    if counts_characters(lang):
        characters = "".join(WORD.findall(text))
        return [characters[at : at + 2] for at in range(0, len(characters), 2)]
    return MARKED.findall(text.lower())


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `<a>-<b>.txt`: each word of a sentence with the one at the same place of its translation, each word once."""
    first, second = name.split(".", maxsplit=1)[0].split("-")
    found: dict[str, str] = {}
    for sentence in sentences:
        left, right = (_words(text, lang) for text, lang in zip(pair_in(sentence, first, second), (first, second), strict=True))
        for at, word in enumerate(left if right else []):
            found.setdefault(word, right[at * len(right) // len(left)])
    return lines([f"{word} {other}" for word, other in found.items()] + [BROKEN])
