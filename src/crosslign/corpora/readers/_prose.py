"""Running text cut into sentences, for corpora that come as articles."""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORDS = """
dr mr mrs ms prof st vs etc jr sr no vol inc ltd co corp gen col lt sgt capt rev hon gov sen rep fig ed eds pp approx est dept univ assn
bros jan feb mar apr jun jul aug sep sept oct nov dec al cf ca i.e e.g u.s u.k
"""
ABBREVIATIONS = frozenset(_WORDS.split())
"""English words that a full stop follows without ending a sentence."""

_END = re.compile(
    r"""([.!?][)"'\u2019\u201d\]»]*(?:\[[\w ?]+\])*)\s+(?=["'(\u201c\u2018\[«„¿¡]*(\S))"""
    r"""|([。！？؟۔।॥։።။។]+[)"'\u2019\u201d\]»」』”）]*)\s*"""
)
"""Marks that may end a sentence with Wikipedia's notes (`[2]`) and the first character behind that opens nothing; marks that always do."""
_LAST_WORD = re.compile(r"([^\s(\[\"“]+)[\s\"]*$")


def _ends(text: str, match: re.Match[str], start: int) -> bool:
    """Tell whether a sentence ends at a match: not before a small letter, nor after an initial or an abbreviation."""
    if match[3]:
        return True
    if match[2].islower() or not match[2].isalnum():
        return False
    if match[1] != ".":
        return True
    word = _LAST_WORD.search(text, start, match.start())
    if word is None:
        return False
    bare = word[1].lower()
    return not (bare in ABBREVIATIONS or (len(bare) == 1 and bare.isalpha()) or re.fullmatch(r"(?:[a-z]\.)+[a-z]", bare))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; a line's end ends a sentence too, white space is collapsed.

    A sentence ends with a full stop, question or exclamation mark before white space and a digit or a letter that is not a small
    one, unless the full stop belongs to an initial or to a known abbreviation; marks of other scripts (`。`, `؟`, `।`) always end one.
    """
    for line in text.splitlines():
        paragraph = " ".join(line.split())
        start = 0
        for match in _END.finditer(paragraph):
            if _ends(paragraph, match, start):
                yield paragraph[start : match.end(3 if match[3] else 1)]
                start = match.end()
        if rest := paragraph[start:].strip():
            yield rest
