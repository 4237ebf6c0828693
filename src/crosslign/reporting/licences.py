"""What the licences of training data forbid who passes a model on: words for people, no legal advice."""

from __future__ import annotations

import re
from collections.abc import Iterable

NON_COMMERCIAL = re.compile(r"\bNC\b|non-?commercial", re.IGNORECASE)
RULES = (
    (NON_COMMERCIAL.pattern, "commercial use"),
    (r"research (alone|only)|for research", "any use except research"),
    (r"-ND\b|no derivatives", "redistribution of changed versions"),
    (r"-SA\b|GFDL|\bGPL", "redistribution under other terms (share alike)"),
    (r"not redistributed", "redistribution of the texts"),
    (r"\bCC-BY\b|attribution", "use without naming the authors"),
)
"""What a licence forbids, by a pattern of its text."""
FREE = re.compile(r"\b(CC0|MIT|Apache-2\.0|BSD|public domain|ODC)", re.IGNORECASE)
UNSTATED = re.compile(r"\b(not stated|unknown)\b|^\s*$", re.IGNORECASE)
READ_IT = "unknown here: read its terms"


def unstated(licences: Iterable[str]) -> list[str]:
    """Return those that name no licence."""
    return [licence for licence in licences if UNSTATED.search(licence)]


def forbidden(licence: str) -> list[str]:
    """Return what a licence forbids, `READ_IT` where its text is none that is known; empty where it forbids nothing that matters here."""
    found = [what for pattern, what in RULES if re.search(pattern, licence, re.IGNORECASE)]
    return found or ([] if FREE.search(licence) else [READ_IT])


def in_words(licence: str) -> str:
    """Return what a licence forbids, in words: `forbids commercial use`, or `free`."""
    what = forbidden(licence)
    return "free" if not what else what[0] if what == [READ_IT] else f"forbids {', '.join(what)}"
