"""Codes of languages, and which evaluation corpora know them: `resources/languages.yaml` of the catalog."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from crosslign.config.yaml_files import load_yaml
from crosslign.paths import CATALOG

SCRIPT_NAMES = {
    "Arab": "Arabic", "Armn": "Armenian", "Beng": "Bengali", "Cyrl": "Cyrillic", "Deva": "Devanagari", "Ethi": "Ethiopic",
    "Geor": "Georgian", "Grek": "Greek", "Gujr": "Gujarati", "Guru": "Gurmukhi", "Hang": "Hangul", "Hans": "Han", "Hant": "Han",
    "Hebr": "Hebrew", "Khmr": "Khmer", "Knda": "Kannada", "Laoo": "Lao", "Latn": "Latin", "Mlym": "Malayalam", "Mymr": "Myanmar",
    "Orya": "Oriya", "Sinh": "Sinhala", "Taml": "Tamil", "Telu": "Telugu", "Thai": "Thai",
}  # fmt: skip
"""Scripts by their codes of ISO 15924, as Unicode and the filter `character_script` call them."""


@functools.cache
def _read() -> Mapping[str, Mapping[str, str] | str]:
    found: Mapping[str, Mapping[str, str] | str] = load_yaml(CATALOG / "resources" / "languages.yaml").content
    return found


@functools.cache
def _codes() -> dict[str, tuple[str, ...]]:
    """Return all codes of a language, those of two letters first, by each of them."""
    rows = [tuple(row.split()) for row in str(_read()["codes"]).split(";")]
    return {code: row for row in reversed(rows) for code in row}


def spellings(code: str) -> list[str]:
    """Return the codes of two and three letters that data sets use for a language, the given one first; without a script."""
    own = code.partition("_")[0]
    return list(dict.fromkeys([own, *_codes().get(own, ())]))


def canonical(code: str) -> str:
    """Return the code by which the project calls a language: two letters where there are; without script and region."""
    own = code.replace("_", "-").partition("-")[0].lower()
    return _codes().get(own, (own,))[0]


def known_as(code: str, languages: list[str]) -> list[str]:
    """Return how an evaluation corpus calls a language, among its codes with scripts; of one script where `code` names it."""
    threes, script = spellings(code), code.partition("_")[2]
    found = [name for name in languages if name.partition("_")[0] in threes]
    return [name for name in found if not script or name.endswith(f"_{script}")]


@functools.cache
def evaluation_languages() -> dict[str, list[str]]:
    """Return the languages of evaluation corpora, as codes of three letters with scripts, by corpus."""
    sets = _read()["sets"]
    return {name: codes.split() for name, codes in sets.items()} if isinstance(sets, Mapping) else {}
