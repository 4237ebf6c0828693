"""Language codes and scripts.

Codes are ISO 639-1 where the data sets of the field use them, ISO 639-3 or 639-3 with script otherwise;
`normalise` maps the spellings that corpora use for one language to one code.
"""

from __future__ import annotations

SCRIPTS: dict[str, tuple[str, ...]] = {
    "am": ("Ethiopic",), "ar": ("Arabic",), "as": ("Bengali",), "be": ("Cyrillic",), "bg": ("Cyrillic",), "bn": ("Bengali",),
    "el": ("Greek",), "fa": ("Arabic",), "gu": ("Gujarati",), "he": ("Hebrew",), "hi": ("Devanagari",), "hy": ("Armenian",),
    "ja": ("Han", "Hiragana", "Katakana"), "ka": ("Georgian",), "kk": ("Cyrillic",), "km": ("Khmer",), "kn": ("Kannada",),
    "ko": ("Hangul",), "ky": ("Cyrillic",), "lo": ("Lao",), "mk": ("Cyrillic",), "ml": ("Malayalam",), "mn": ("Cyrillic",),
    "mr": ("Devanagari",), "my": ("Myanmar",), "ne": ("Devanagari",), "or": ("Oriya",), "pa": ("Gurmukhi",), "ps": ("Arabic",),
    "ru": ("Cyrillic",), "sa": ("Devanagari",), "sd": ("Arabic",), "si": ("Sinhala",), "sr": ("Cyrillic", "Latin"), "ta": ("Tamil",),
    "te": ("Telugu",), "th": ("Thai",), "ug": ("Arabic",), "uk": ("Cyrillic",), "ur": ("Arabic",), "yi": ("Hebrew",), "zh": ("Han",),
}  # fmt: skip
"""Unicode scripts of languages that are not written in Latin letters, by code."""

CHARACTER_UNITS = frozenset({"zh", "ja", "th", "km", "lo", "my"})
"""Languages whose lengths are counted in characters, because they put no space between words (docs/papers/emma_x.md)."""

ISO_639_3 = {
    "ara": "ar", "bul": "bg", "cmn": "zh", "deu": "de", "ell": "el", "eng": "en", "fra": "fr", "hin": "hi", "rus": "ru", "spa": "es",
    "swh": "sw", "tha": "th", "tur": "tr", "urd": "ur", "vie": "vi", "afr": "af", "ben": "bn", "est": "et", "eus": "eu", "pes": "fa",
    "fin": "fi", "heb": "he", "hun": "hu", "ind": "id", "ita": "it", "jav": "jv", "jpn": "ja", "kat": "ka", "kaz": "kk", "kor": "ko",
    "mal": "ml", "mar": "mr", "nld": "nl", "por": "pt", "tam": "ta", "tel": "te", "tgl": "tl", "aze": "az", "lit": "lt", "pol": "pl",
    "ron": "ro", "ukr": "uk",
}  # fmt: skip
"""Two-letter code of the three-letter codes that Tatoeba's file names use, for languages of the five papers' lists."""


def normalise(code: str) -> str:
    """Return the project's code of a language: lower case, no region, two letters where they exist (`zh-CN`, `cmn` → `zh`)."""
    base = code.replace("_", "-").split("-")[0].lower()
    return ISO_639_3.get(base, base)


def scripts_of(code: str) -> tuple[str, ...]:
    """Return the Unicode scripts that a language is written in; Latin where the table names none."""
    return SCRIPTS.get(normalise(code), ("Latin",))


def counts_characters(code: str) -> bool:
    """Tell whether lengths in this language are counted in characters, not in words."""
    return normalise(code) in CHARACTER_UNITS


def pair_of(subset: str) -> tuple[str, str]:
    """Split `de-en` into its two codes."""
    left, _, right = subset.partition("-")
    return left, right
