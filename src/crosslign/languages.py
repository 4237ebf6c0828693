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

_LABELS = """
aar:aa abk:ab aka:ak als:sq amh:am ara:ar arb:ar arg:an asm:as ars:ar ava:av aym:ay ayr:ay azj:az bak:ba bam:bm bel:be bis:bi bod:bo
bos:bs bre:br cat:ca ces:cs cha:ch che:ce chu:cu chv:cv cor:kw cos:co cre:cr cym:cy dan:da div:dv dzo:dz ekk:et epo:eo ewe:ee fao:fo
fas:fa fij:fj fil:tl fry:fy ful:ff gaz:om gla:gd gle:ga glg:gl glv:gv grn:gn gug:gn guj:gu hat:ht hau:ha her:hz hmo:ho hrv:hr hye:hy
ibo:ig ido:io iii:ii iku:iu ile:ie ina:ia ipk:ik isl:is kal:kl kan:kn kas:ks kau:kr khk:mn khm:km kik:ki kin:rw kir:ky kmr:ku kom:kv
kon:kg kua:kj kur:ku lao:lo lat:la lav:lv lim:li lin:ln ltz:lb lub:lu lug:lg lvs:lv mah:mh mkd:mk mlg:mg mlt:mt mon:mn mri:mi msa:ms
mya:my nau:na nav:nv nbl:nr nde:nd ndo:ng nep:ne nno:nn nob:no nor:no npi:ne nya:ny oci:oc oji:oj ori:or orm:om ory:or oss:os pan:pa
pbt:ps pbu:ps pli:pi plt:mg prs:fa pus:ps que:qu quy:qu quz:qu roh:rm run:rn sag:sg san:sa sin:si slk:sk slv:sl sme:se smo:sm sna:sn
snd:sd som:so sot:st sqi:sq srd:sc srp:sr ssw:ss sun:su swa:sw swe:sv tah:ty tat:tt tgk:tg tir:ti ton:to tsn:tn tso:ts tuk:tk twi:ak
uig:ug uzb:uz uzn:uz ven:ve wln:wa wol:wo xho:xh ydd:yi yid:yi yor:yo zha:za zho:zh zsm:ms zul:zu
"""
LABELS = dict(pair.split(":") for pair in _LABELS.split())
"""The same of the codes of ISO 639-3 that name a language with its script (`ekk_Latn`): models of languages answer with those of single
languages, where corpora say their macrolanguage (Estonian, Arabic, Norwegian)."""


def normalise(code: str) -> str:
    """Return the project's code of a language: lower case, no region, two letters where they exist (`zh-CN`, `cmn` → `zh`)."""
    base = code.replace("_", "-").split("-")[0].lower()
    return ISO_639_3.get(base, base)


def of_label(code: str) -> str:
    """Return the project's code of a language that a model of languages answers with: `arb_Arab` → `ar`; `als` alone is Alemannic."""
    base = normalise(code)
    return LABELS.get(base, base) if "_" in code or "-" in code else base


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
