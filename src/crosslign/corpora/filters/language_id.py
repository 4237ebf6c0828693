"""Language identification by lingua, over the languages of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosslign.corpora.filters import FILTERS, Filter, Mask, Setting, Sides
from crosslign.errors import InputError
from crosslign.languages import normalise

XNLI_LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")


@FILTERS.register
class LanguageId(Filter):
    """Keep sentences whose declared language is the most probable one, with more than `min_confidence`.

    Languages that lingua does not know pass. A short sentence of one language is often a fine one of another, so the
    choice is between the languages of the corpus; where these are fewer than two, between them and XNLI's fifteen.

    Args:
        setting: the corpus.
        min_confidence: probability that must be exceeded, 0 to 1.
        among: languages to choose between instead.
        low_accuracy: use the faster model of trigrams alone.

    Raises:
        InputError: lingua knows fewer than two of the languages named by `among`.
    """

    def __init__(
        self, setting: Setting, *, min_confidence: float = 0.5, among: Sequence[str] | None = None, low_accuracy: bool = False
    ) -> None:
        super().__init__(setting)
        self.min_confidence = min_confidence
        known = _lingua_languages()
        languages = {normalise(lang) for lang in among or setting.langs} & set(known)
        if len(languages) < 2 and among:
            raise InputError(
                "language_id has fewer than two languages to choose between",
                where=setting.where,
                why=f"of {list(among)}, {sorted(languages)} are known",
            )
        if len(languages) < 2:
            languages |= set(XNLI_LANGUAGES) & set(known)
        self.languages = frozenset(languages)
        self._detector = _detector([known[code] for code in sorted(languages)], low_accuracy)

    def keep(self, batch: Sides) -> Mask:
        """Return which rows are in the languages that they are declared to be in."""
        mask = np.ones(len(batch), bool)
        for texts, langs in batch.own:
            asked = [row for row, lang in enumerate(langs) if lang is not None and normalise(lang) in self.languages and texts[row]]
            for row, values in zip(
                asked, self._detector.compute_language_confidence_values_in_parallel([texts[r] for r in asked]), strict=True
            ):
                best = values[0]
                mask[row] &= best.language.iso_code_639_1.name.lower() == normalise(str(langs[row])) and best.value > self.min_confidence
        return mask


def _lingua_languages() -> dict[str, Any]:
    from lingua import Language

    return {language.iso_code_639_1.name.lower(): language for language in Language.all()}


def _detector(languages: list[Any], low_accuracy: bool) -> Any:
    from lingua import LanguageDetectorBuilder

    builder = LanguageDetectorBuilder.from_languages(*languages)
    return (builder.with_low_accuracy_mode() if low_accuracy else builder).build()
