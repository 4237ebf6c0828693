"""Language identification: by lingua's bundled models over the languages of the corpus, by a fastText model, or by heliport's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslign.corpora.filters import FILTERS, Filter, Mask, Setting, Sides
from crosslign.errors import InputError
from crosslign.languages import normalise, of_label
from crosslign.options import Langs, Share

XNLI_LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")

HELIPORT = "heliport"
ONE_OF = dict.fromkeys(("bs", "hr", "sh", "sr"), "hbs")
"""Languages that heliport does not tell from each other, and what it calls them."""


@FILTERS.register(version=2)
class LanguageId(Filter):
    """Keep sentences whose declared language is the most probable one, with more than `min_confidence`.

    Languages that lingua does not know pass. A short sentence of one language is often a fine one of another, so the
    choice is between the languages of the corpus; where these are fewer than two, between them and XNLI's fifteen.

    Args:
        setting: the corpus.
        min_confidence: probability that must be exceeded, 0 to 1.
        among: languages to choose between instead.
        low_accuracy: use the faster model of trigrams alone.
        model: a fastText model that decides instead, among all its languages: its path, or the source of the catalog that has it
            (`lid176`; `glotlid`, of 2,102 labels), which is not asked for where synthetic data is written. As in OpusFilter, the
            first label must be the declared language. `heliport` is that package's own (220 languages, in the package;
            `pip install heliport`), which is sure or says nothing.
        model_langs: languages whose sentences the model judges, lingua those of all others; left out, it judges all.

    Raises:
        InputError: lingua knows fewer than two of the languages named by `among`; the model or its package is not there.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        min_confidence: Share = 0.5,
        among: Langs | None = None,
        low_accuracy: bool = False,
        model: str | None = None,
        model_langs: Langs | None = None,
    ) -> None:
        super().__init__(setting)
        self.min_confidence = min_confidence
        if model_langs is not None and not model:
            do = "Name a `model`, or remove `model_langs`"
            raise InputError(
                "no model judges these languages", where=f"{setting.where}: language_id", why=f"model_langs: {model_langs}", do=do
            )
        own = None if model_langs is None else {normalise(lang) for lang in model_langs}
        self._judges: list[tuple[_Identifier, Collection[str] | None]] = []
        if model:
            self._judges += [(_heliport(setting.where) if model == HELIPORT else _fasttext(Path(model), setting.where), own)]
        if not model or own is not None:
            self._judges += [(_lingua(_choice(setting, among), low_accuracy), None)]

    def keep(self, batch: Sides) -> Mask:
        """Return which rows are in the languages that they are declared to be in."""
        mask = np.ones(len(batch), bool)
        for texts, langs in batch.own:
            scores = self.score(texts, langs)
            mask &= np.isnan(scores) | (scores > self.min_confidence)
        return mask

    def score(self, texts: Sequence[str | None], langs: Sequence[str | None]) -> NDArray[np.float64]:
        """Return how probable the declared language of each text is; -1 where another is more so, NaN where nothing is known."""
        scores, left = np.full(len(texts), np.nan), {lang for lang in langs if lang is not None}
        for identify, own in self._judges:
            mine = left if own is None else {lang for lang in left if normalise(lang) in own}
            codes: dict[str | None, str] = {lang: identify.code(lang) for lang in mine}
            asked = [row for row, lang in enumerate(langs) if codes.get(lang) in identify.languages and texts[row]]
            for row, (best, confidence) in zip(asked, identify([str(texts[row]) for row in asked]), strict=True):
                scores[row] = confidence if best == codes[langs[row]] else -1.0
            left = left - mine
        return scores


class _Identifier:
    """Finds the most probable language of texts.

    Args:
        languages: codes that it can answer with.
        identify: texts to (language, confidence).
        code: what it calls a language.
    """

    def __init__(
        self,
        languages: Collection[str],
        identify: Callable[[list[str]], Iterable[tuple[str, float]]],
        code: Callable[[str], str],
    ) -> None:
        self.languages = frozenset(languages)
        self._identify = identify
        self.code = code

    def __call__(self, texts: list[str]) -> Iterable[tuple[str, float]]:
        return self._identify(texts)


def _choice(setting: Setting, among: Sequence[str] | None) -> list[str]:
    """Return the languages between which lingua chooses."""
    known = _lingua_languages()
    languages = {_lingua_code(lang) for lang in among or setting.langs} & set(known)
    if len(languages) < 2 and among:
        raise InputError(
            "language_id needs two or more languages to choose from",
            where=setting.where,
            why=f"known languages among {list(among)}: {sorted(languages)}",
        )
    return sorted(languages if len(languages) > 1 else languages | (set(XNLI_LANGUAGES) & set(known)))


def _lingua(languages: Sequence[str], low_accuracy: bool) -> _Identifier:
    known = _lingua_languages()
    detector = _detector([known[code] for code in languages], low_accuracy)

    def identify(texts: list[str]) -> Iterable[tuple[str, float]]:
        for values in detector.compute_language_confidence_values_in_parallel(texts):
            yield values[0].language.iso_code_639_1.name.lower(), values[0].value

    return _Identifier(languages, identify, _lingua_code)


def _fasttext(path: Path, where: str) -> _Identifier:
    import fasttext

    if not path.is_file():
        advice = "Download fastText's lid.176.ftz or lid.176.bin, or remove `model`"
        raise InputError("the fastText model is missing", where=f"{where}: language_id", why=str(path), do=advice)
    model = fasttext.load_model(str(path))

    def identify(texts: list[str]) -> Iterable[tuple[str, float]]:
        for text in texts:
            labels, confidences = model.predict(" ".join(text.encode("utf-8", "replace").decode().split()), k=1)
            yield (of_label(labels[0].removeprefix("__label__")), float(confidences[0])) if labels else ("", 0.0)

    answers, _ = model.predict("a", k=-1, threshold=-1.0)  # every label, whatever its probability
    return _Identifier({of_label(label.removeprefix("__label__")) for label in answers}, identify, of_label)


def _heliport(where: str) -> _Identifier:
    try:
        from heliport import Identifier
    except ImportError as error:
        raise InputError("heliport is not installed", where=f"{where}: language_id", do="pip install heliport") from error
    model = Identifier()

    def code(lang: str) -> str:
        found = of_label(lang)
        return ONE_OF.get(found, found)

    def identify(texts: list[str]) -> Iterable[tuple[str, float]]:
        for text in texts:
            yield code(f"{model.identify(text.encode('utf-8', 'replace').decode())}_"), 1.0

    known = files("heliport").joinpath("confidenceThresholds").read_text("utf-8")
    return _Identifier({code(f"{line.split()[0]}_") for line in known.splitlines()}, identify, code)


def _lingua_code(lang: str) -> str:
    found = normalise(lang)
    return "nb" if found == "no" else found  # its Norwegian is Bokmål, as that of most corpora


def _lingua_languages() -> dict[str, Any]:
    from lingua import Language

    return {language.iso_code_639_1.name.lower(): language for language in Language.all()}


def _detector(languages: list[Any], low_accuracy: bool) -> Any:
    from lingua import LanguageDetectorBuilder

    builder = LanguageDetectorBuilder.from_languages(*languages)
    return (builder.with_low_accuracy_mode() if low_accuracy else builder).build()
