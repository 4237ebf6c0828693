"""Lengths of sentences."""

from __future__ import annotations

from crosslign.languages import counts_characters


def units(text: str, lang: str) -> int:
    """Return the number of words, or of characters that are no white space in languages without spaces between words."""
    words = text.split()
    return sum(map(len, words)) if counts_characters(lang) else len(words)
