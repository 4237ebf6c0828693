"""A column of sentences as arrays of characters: what rules count, they count for a whole batch at once."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import regex
from numpy.typing import NDArray

from crosslign.corpora.characters import ClassTable
from crosslign.languages import SCRIPTS, counts_characters

Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]

SPACE, ALPHABETIC, MARK, NUMERAL, LESS_THAN = 1, 2, 4, 8, 16
MARKS = frozenset(".?!…。．？！؟۔।")
"""OpusFilter's four marks of a sentence's end and their counterparts of other scripts, which it does not see."""

SCRIPT_NAMES = sorted({"Latin", *(script for scripts in SCRIPTS.values() for script in scripts)})
NO_SCRIPT, OTHER_SCRIPT, FIRST_SCRIPT = 0, 1, 2

_is_alphabetic = regex.compile(r"\p{Alphabetic}").match
_has_script = regex.compile(r"(?V1)[\p{Alphabetic}--[\p{Script=Common}\p{Script=Inherited}]]").match
_script_matches = [regex.compile(rf"\p{{Script={name}}}").match for name in SCRIPT_NAMES]


def _classes(character: str) -> int:
    return (
        SPACE * character.isspace()
        | ALPHABETIC * (_is_alphabetic(character) is not None)
        | MARK * (character in MARKS)
        | NUMERAL * (unicodedata.decimal(character, 0) != 0)
        | LESS_THAN * (character == "<")
    )


def _script(character: str) -> int:
    if _has_script(character) is None:
        return NO_SCRIPT
    return next((n for n, match in enumerate(_script_matches, FIRST_SCRIPT) if match(character)), OTHER_SCRIPT)


CLASSES = ClassTable(_classes)
"""Bits of a character: white space, alphabetic (Unicode property), mark of a sentence's end, decimal digit but zero, `<`."""

LETTER_SCRIPTS = ClassTable(_script)
"""Script of a letter, as its number in `SCRIPT_NAMES` from 2; 1 for another script, 0 for what is not a letter or has every script."""


class Column:
    """One side of a batch: n sentences with their languages, and what is counted in them, each when it is first asked for.

    Args:
        texts: sentences; None where a row has none (counted as empty).
        langs: their languages.
    """

    def __init__(self, texts: Sequence[str | None], langs: Sequence[str | None]) -> None:
        self.texts = [text or "" for text in texts]
        self.langs = langs
        self.there: Mask = np.ones(len(texts), bool)
        if None in texts or None in langs:
            there = (text is not None and lang is not None for text, lang in zip(texts, langs, strict=True))
            self.there = np.fromiter(there, bool, len(texts))

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def codes(self) -> NDArray[np.uint32]:
        """Code points of all sentences, one after another."""
        return np.frombuffer("".join(self.texts).encode("utf-32-le", "surrogatepass"), "<u4")

    @cached_property
    def lengths(self) -> Counts:
        """Characters of each sentence."""
        return np.fromiter(map(len, self.texts), np.int64, len(self.texts))

    @cached_property
    def bounds(self) -> Counts:
        """Where each sentence begins in `codes`, and where the last one ends: shape [n + 1]."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths)])

    @cached_property
    def classes(self) -> NDArray[np.uint8]:
        """`CLASSES` of all characters."""
        return CLASSES.of(self.codes)

    @cached_property
    def scripts(self) -> NDArray[np.uint8]:
        """`LETTER_SCRIPTS` of all characters."""
        return LETTER_SCRIPTS.of(self.codes)

    def count(self, characters: Mask) -> Counts:
        """Return how many marked characters each sentence has."""
        return np.diff(np.searchsorted(np.flatnonzero(characters), self.bounds))

    def having(self, bits: int) -> Mask:
        """Return which characters have any of the bits of `CLASSES`."""
        return np.asarray((self.classes & bits) != 0)

    @cached_property
    def spaces(self) -> Counts:
        """White space characters of each sentence."""
        return self.count(self.having(SPACE))

    @cached_property
    def words(self) -> tuple[Counts, Counts]:
        """Where each word (between white space) of all sentences begins in `codes`, and where it ends."""
        inside = ~self.having(SPACE)
        first = np.zeros(len(inside) + 1, bool)
        first[self.bounds] = True
        before, after = np.ones(len(inside), bool), np.ones(len(inside), bool)
        before[1:] = ~inside[:-1]
        after[:-1] = ~inside[1:]
        return np.flatnonzero(inside & (before | first[:-1])), np.flatnonzero(inside & (after | first[1:])) + 1

    @cached_property
    def units(self) -> Counts:
        """Words of each sentence; characters that are not white space in languages without spaces between words."""
        words = np.diff(np.searchsorted(self.words[0], self.bounds))
        return np.where(self.in_characters, self.lengths - self.spaces, words)

    @cached_property
    def in_characters(self) -> Mask:
        """Which sentences are counted in characters, not in words."""
        return self.by_language(counts_characters)

    def by_language(self, tell: Callable[[str], bool]) -> Mask:
        """Return for each sentence what `tell` says of its language; False where it has none."""
        known = {lang: lang is not None and tell(lang) for lang in set(self.langs)}
        if len(known) == 1:
            return np.full(len(self), next(iter(known.values())))
        return np.fromiter(map(known.__getitem__, self.langs), bool, len(self))
