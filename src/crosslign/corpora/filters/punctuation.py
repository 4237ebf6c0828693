"""Moses' punctuation normaliser, from sacremoses: a map, not a filter."""

from __future__ import annotations

from typing import Any

from crosslign.corpora.filters import FILTERS, Setting, TextMap
from crosslign.languages import normalise


@FILTERS.register(version=1)
class Punctuation(TextMap):
    """Bring quotes, dashes and spaces around punctuation to one form, by the rules of the text's language."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._normalisers: dict[str, Any] = {}

    def change(self, text: str, lang: str) -> str:
        """Return the text with normalised punctuation."""
        code = normalise(lang)
        if code not in self._normalisers:
            from sacremoses import MosesPunctNormalizer

            self._normalisers[code] = MosesPunctNormalizer(code)
        return str(self._normalisers[code].normalize(text)).strip()
