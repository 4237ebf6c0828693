"""What there is for a pair of languages, without network: OPUS by opustools' catalogue, our own catalog, and evaluation corpora."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from crosslign.config.catalog import bytes_of, file_names
from crosslign.config.known_languages import SCRIPT_NAMES, canonical, evaluation_languages, known_as, spellings
from crosslign.config.pairs import FILTERS, LONGEST, MOST, PREFIX, TATOEBA, WEIGHT
from crosslign.config.project import Project
from crosslign.console import as_columns, bytes_text
from crosslign.corpora.sources.opus import catalogued
from crosslign.errors import InputError

LEAST = 2_000
"""Sentence pairs below which no encoder is trained on a pair."""
ENOUGH = (500_000, 100_000, 100_000)
"""Sentence pairs from which on no further corpus is taken, by rank."""
FEW = 20_000
"""Sentence pairs of two languages below which text of each with English is taken too."""
SMALLEST = 100
"""Sentence pairs of a corpus that is worth a download."""
BATCH, FEWEST_STEPS, MOST_STEPS = 64, 200, 3_000
SHOWN = 6
"""Corpora that are not taken, and shown by name."""
READ_BYTES = 300_000_000
"""Files of a corpus that a plan takes by itself; larger ones are named."""
CARED_FOR = (
    "Tatoeba", "TED2020", "NeuLab-TedTalks", "GlobalVoices", "News-Commentary", "Europarl", "bible-uedin", "QED", "wikimedia", "GoURMET",
    "tico-19", "UNPC", "MultiUN", "WMT-News", "infopankki", "Tanzil", "SETIMES", "TedTalks", "EMEA", "JRC-Acquis",
)  # fmt: skip
"""Corpora of OPUS that people wrote or checked, as sentences; the rest is crawled."""
STRINGS = ("GNOME", "KDE4", "KDEdoc", "Ubuntu", "PHP", "OpenOffice", "Mozilla-I10n", "XLEnt", "EUbookshop")
"""Corpora of strings of software, names, or scans: taken last."""
ENGLISH, ENGLISH_ROWS = "en", 100_000
"""Code of the pivot; about so many English sentences are code-switched."""
USUAL_SCRIPT = {"ar": "_Arab", "zh": "_Hans"}
"""Script that is meant where a code of many readers names none."""
OPUS_SCRIPTS = {
    "zh_Hans": ("zh", "cmn", "zh_CN", "zh_cn"),
    "zh_Hant": ("zh_TW", "zh_HK", "zh_tw", "zh_hk"),
    "crh_Latn": ("crh", "crh_latn"),
}
SIMILARITY = {
    "ar": [("sts17_tracks", "ar-en")],
    "es": [("sts17_tracks", "es-en"), ("sts17_tracks", "es-es")],
    "ko": [("korsts_dev", "ko-ko")],
    **{
        lang: [("sts17_extended", pair)]
        for lang, pair in (("de", "en-de"), ("tr", "en-tr"), ("fr", "fr-en"), ("it", "it-en"), ("nl", "nl-en"))
    },
}
"""Graded pairs of the catalog by language."""
TOKENS, CPU_FLOPS, GPU_FLOPS = 25, 5e11, 5e13
"""Tokens of a sentence; operations a second of two cores and of one GPU, six a token and parameter (of all) being counted. Rough."""


@dataclass(frozen=True)
class Text:
    """Parallel text of two languages.

    Attributes:
        pair: the two languages, as the user named them; of monolingual text one.
        name: of the corpus.
        item: how a pair's file names it.
        sentences: pairs that are counted in it; 0 where nobody counted.
        size: bytes of its files; 0 where nobody knows.
        licence, year: as our catalog has them, else "unknown".
        rank: 0 cared for or of the catalog, 1 crawled, 2 strings.
    """

    pair: str
    name: str
    item: Mapping[str, Any]
    sentences: int
    size: int
    licence: str = "unknown"
    year: str = "unknown"
    rank: int = 1


@dataclass
class Plan:
    """What a pair's file is made of.

    Attributes:
        pairs: pairs that are trained on.
        found: all text, by pair.
        taken: parallel text that is trained on.
        dictionaries: by which English sentences are code-switched, where there is too little parallel text.
        monolingual: text of the language alone, where there is no dictionary either.
        evaluations: codes of the languages by evaluation corpus of the table.
        languages: all but English, as the user named them.
        lacking: those of which no evaluation corpus of the table knows anything.
    """

    pairs: list[str]
    found: list[Text]
    taken: list[Text] = field(default_factory=list)
    dictionaries: list[str] = field(default_factory=list)
    monolingual: list[Text] = field(default_factory=list)
    evaluations: dict[str, list[str]] = field(default_factory=dict)
    languages: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)


def _number(value: Any) -> int:
    return int(value) if str(value).isdecimal() else 0


def _rank(name: str) -> int:
    """Return the rank of a corpus of OPUS."""
    return 0 if name in CARED_FOR else 2 if name in STRINGS else 1


def _opus_codes(code: str) -> list[str]:
    """Return how OPUS may call a language; some of its corpora name a country where others have a script."""
    return list(OPUS_SCRIPTS.get(code, spellings(code)))


def _kept(found: dict[str, Text], pair: str, row: Mapping[str, Any], item: Mapping[str, Any]) -> None:
    """Keep the larger of two files of one corpus of OPUS."""
    name, sentences, size = str(row["corpus"]), _number(row["alignment_pairs"]), 1024 * _number(row["size"])
    item = {"opus": name, "version": str(row["version"]), **item, "sentences": sentences, "about_bytes": max(1, size)}
    if name not in found or sentences > found[name].sentences:
        found[name] = Text(pair, f"OPUS {name}", item, sentences, size, rank=_rank(name))


def of_opus(pair: str) -> list[Text]:
    """Return the newest version of each corpus of OPUS that has a pair, as Moses lines."""
    left, right = (_opus_codes(code) for code in pair.split("-"))
    found: dict[str, Text] = {}
    for one in left:
        for other in right:
            first, second = sorted((one, other))
            for row in catalogued({"source": first, "target": second, "preprocessing": "moses", "latest": "True"}):
                _kept(found, pair, row, {"pair": f"{row['source']}-{row['target']}"})
    return list(found.values())


def of_one_language(code: str) -> list[Text]:
    """Return the newest version of each corpus of OPUS that has text of a language, as lines."""
    found: dict[str, Text] = {}
    for one in _opus_codes(code):
        for row in catalogued({"source": one, "target": "", "preprocessing": "mono", "latest": "True"}):
            if str(row["url"]).endswith(f"/{one}.txt.gz"):
                _kept(found, code, row, {"lang": one})
    return list(found.values())


def _year(text: str) -> str:
    found = re.findall(r"\b(?:19|20)\d\d\b", text)
    return found[-1] if found else "unknown"


def of_catalog(project: Project, pair: str) -> list[Text]:
    """Return corpora of the catalog with both languages that can be fetched by anybody; dictionaries and the project's own are none."""
    langs = {canonical(code) for code in pair.split("-")}
    found = []
    for name, entry in project.corpora.items():
        usable = entry["kind"] in ("bitext", "multiway") and entry.get("access", "open") == "open" and name not in project.evaluated_alone
        if not usable or entry["reader"] == "dictionary" or not langs <= set(entry["langs"]) or name.startswith(PREFIX):
            continue
        source = project.sources[entry["source"]]
        wanted = set(file_names(source, entry))
        sizes = [bytes_of(file) for file in source.get("files", []) if file["name"] in wanted]
        if "local" not in source:
            text = Text(pair, name, {"corpus": name}, 0, int(sum(sizes)), entry["licence"], _year(entry.get("citation", "")))
            found.append(replace(text, rank=_rank(source["opus"]) if "opus" in source else 0))
    return found


def direct_text(project: Project, pair: str) -> list[Text]:
    """Return all text of a pair, each corpus once: of OPUS, by our catalog's entry where it has one, and what only the catalog has.

    Corpora of the catalog tell no script; a pair with one has those of OPUS alone.
    """
    licences = {one["opus"]: one for name, one in project.sources.items() if "opus" in one and not name.startswith(PREFIX)}
    opus, found = {str(text.item["opus"]): text for text in of_opus(pair)}, []
    for text in [] if "_" in pair else of_catalog(project, pair):
        twin = opus.pop(str(project.sources[project.corpora[text.name]["source"]].get("opus")), None)
        found.append(replace(text, sentences=twin.sentences, rank=twin.rank) if twin else text)
    for name, text in opus.items():
        known: Mapping[str, Any] = licences.get(name, {})
        found.append(replace(text, licence=known.get("licence", "unknown"), year=_year(known.get("citation", ""))))
    return found


def dictionaries(project: Project, pair: str) -> list[str]:
    """Return the dictionaries of the catalog between two languages."""
    langs = {canonical(code) for code in pair.split("-")}
    return [name for name, entry in project.corpora.items() if entry.get("reader") == "dictionary" and langs == set(entry["langs"])]


def _tatoeba(project: Project) -> list[str]:
    """Return the languages of Tatoeba v1 but English, as its files call them."""
    return sorted({file["name"].rsplit(".", 1)[-1] for file in project.sources[TATOEBA]["files"]} - {"eng"})


def evaluations_of(project: Project, code: str) -> dict[str, list[str]]:
    """Return how the table's evaluation corpora, with English as a pivot, call a language, by corpus; only those that have it."""
    tatoeba = known_as(code.partition("_")[0], _tatoeba(project))
    own = code if "_" in code else f"{code}{USUAL_SCRIPT.get(canonical(code), '')}"
    flores = known_as(own, evaluation_languages()["FLORES-200"])
    return {kind: codes for kind, codes in (("tatoeba", tatoeba[:1]), ("flores", flores)) if codes}


def similarity_of(codes: Iterable[str]) -> list[tuple[str, str]]:
    """Return task and subset of the catalog's graded pairs in some languages."""
    return [found for code in codes for found in SIMILARITY.get(canonical(code), ())]


def choose(found: Iterable[Text]) -> list[Text]:
    """Return the text of one pair to train on: what people wrote first, then what was crawled, until there is enough."""
    taken: list[Text] = []
    for text in sorted(found, key=lambda one: (one.rank, -one.sentences)):
        counted = text.sentences or "opus" in text.item
        fits = text.size <= READ_BYTES and (text.sentences >= SMALLEST if counted else text.size > 0)
        if fits and sum(one.sentences for one in taken) < ENOUGH[text.rank]:
            taken.append(text)
    return taken


def survey(project: Project, pairs: list[str]) -> Plan:
    """Look up what there is for some pairs, and choose.

    Raises:
        InputError: too little text of any kind; says how much there is, and what would help.
    """
    plan, by_english, few = Plan([], []), dict[str, list[Text]](), set[str]()
    for pair in pairs:
        direct, codes = direct_text(project, pair), pair.split("-")
        taken = choose(direct)
        there = sum(text.sentences for text in taken)
        pivots = [] if ENGLISH in codes else [f"{ENGLISH}-{code}" for code in codes]
        by_english |= {pivot: direct_text(project, pivot) for pivot in pivots if pivot not in by_english}
        few |= set(pivots) if there < FEW else set()
        plan.pairs += [pair]
        plan.found += direct
        if there < LEAST and not any(text.size for text in taken if "corpus" in text.item):
            _without_parallel(project, plan, pair, direct, {pivot: by_english[pivot] for pivot in pivots})
        else:
            plan.taken += taken
    for pivot, texts in by_english.items():
        if not {pivot, "-".join(reversed(pivot.split("-")))} & set(pairs):
            plan.found += texts
            if pivot in few and (more := choose(texts)):
                plan.pairs += [pivot]
                plan.taken += more
    # Two scripts of a language have the same files.
    plan.taken = [text for at, text in enumerate(plan.taken) if text.item not in [one.item for one in plan.taken[:at]]]
    plan.languages = list(dict.fromkeys(code for pair in pairs for code in pair.split("-") if code != ENGLISH))
    for code in plan.languages:
        sets = evaluations_of(project, code)
        for kind, codes in sets.items():
            plan.evaluations.setdefault(kind, []).extend(codes)
        plan.lacking += [] if sets else [code]
    return plan


def _without_parallel(project: Project, plan: Plan, pair: str, direct: list[Text], by_english: Mapping[str, list[Text]]) -> None:
    """Choose a dictionary for a pair with English that has too little parallel text, else text of the language alone.

    Raises:
        InputError: there is neither, or the pair has no English.
    """
    others = [code for code in pair.split("-") if code != ENGLISH]
    if by_english:
        raise _too_little(project, pair, direct, by_english, 0)
    if words := [name for name in dictionaries(project, pair) if project.corpora[name].get("access", "open") == "open"]:
        plan.dictionaries.append(words[-1])
        return
    alone = [text for text in of_one_language(others[0]) if text.size <= READ_BYTES and text.sentences >= SMALLEST]
    plan.found += alone
    if (sentences := sum(text.sentences for text in alone)) < LEAST:
        raise _too_little(project, pair, direct, by_english, sentences)
    plan.monolingual += alone


def _too_little(project: Project, pair: str, direct: list[Text], by_english: Mapping[str, list[Text]], alone: int) -> InputError:
    """Return the error for a pair that has too little text."""
    counts = ", ".join(f"{text.name} {text.sentences:,}" for text in direct) or "no corpus"
    pivots = [f"{pivot} {sum(text.sentences for text in texts):,}" for pivot, texts in by_english.items()]
    helps = [f"pairs with English ({', '.join(pivots)}): crosslign pair {pivots[0].split()[0]} ..."] if pivots else []
    helps += [f"the dictionary {name}, by code-switching (docs/filters-and-views.md)" for name in dictionaries(project, pair)]
    helps += ["two files of your own (docs/add-a-corpus.md) under `text:`", "monolingual text to mine (docs/mine-your-own.md)"]
    why = f"at least {LEAST:,} sentence pairs are needed; found: {counts}"
    why += "" if by_english else f"; or {LEAST:,} sentences of one language; found: {alone:,}"
    return InputError(f"too little parallel text for {pair}", where="crosslign pair", why=why, do="Possible additions: " + "; ".join(helps))


def steps_of(plan: Plan) -> int:
    """Return the optimiser steps of one pass over what is trained on, within bounds."""
    rows = sum(min(text.sentences, MOST) for text in plan.taken or plan.monolingual) or ENGLISH_ROWS
    return max(FEWEST_STEPS, min(MOST_STEPS, rows // BATCH))


def table_lines(plan: Plan) -> Iterator[str]:
    """Yield text by pair, with what is taken of it; of what is not, the largest corpora, and the sum of the others."""
    taken = {id(text) for text in (*plan.taken, *plan.monolingual)}
    for pair, texts in groupby(plan.found, key=lambda text: text.pair):
        rows = [("", "text of " + pair, "sentences", "files", "licence", "year")]
        ordered = sorted(texts, key=lambda one: (id(one) not in taken, -one.sentences, one.name))
        most = sum(id(text) in taken for text in ordered) + SHOWN
        others = ordered[most:] if len(ordered) > most + 1 else []
        rest = Text(pair, f"{len(others)} others", {}, sum(one.sentences for one in others), sum(one.size for one in others), "", "")
        for text in [*ordered[: len(ordered) - len(others)], *([rest] if others else [])]:
            counts = (f"{text.sentences:,}" if text.sentences else "?", bytes_text(text.size) if text.size else "?")
            rows.append(("+" if id(text) in taken else "", text.name, *counts, text.licence[:40], text.year))
        yield from as_columns(rows, right=(2, 3))


def method_of(plan: Plan, teacher: str | None) -> str:
    """Return in words by what the encoder is trained."""
    ways = ["distillation from " + teacher if teacher else "InfoNCE on parallel sentences"] if plan.taken else []
    ways += [f"English sentences, code-switched by {', '.join(plan.dictionaries)}"] if plan.dictionaries else []
    ways += ["sentences of one language, each paired with itself: expect little"] if plan.monolingual else []
    return "; ".join(ways)


def set_lines(project: Project, plan: Plan) -> Iterator[str]:
    """Yield the evaluation corpora that know the languages, with what they call them; those that the table has are marked."""
    rows = [("", "evaluation corpus", *plan.languages)]
    for name, languages in {"Tatoeba v1": _tatoeba(project), **evaluation_languages()}.items():
        known = [" ".join(known_as(code.partition("_")[0] if name == "Tatoeba v1" else code, languages)) for code in plan.languages]
        if any(known):
            kind = {"Tatoeba v1": "tatoeba", "FLORES-200": "flores"}.get(name, "")
            rows.append(("+" if kind in plan.evaluations else "", name, *(codes or "-" for codes in known)))
    yield from as_columns(rows)


def cost_lines(project: Project, plan: Plan, encoder: str, steps: int) -> Iterator[str]:
    """Yield downloads, disk and hours of the training, roughly."""
    parameters = 1e6 * float(project.encoders[encoder].get("parameters_m", 100))
    files = sum(text.size for text in (*plan.taken, *plan.monolingual))
    whole, steps = steps, min(steps, project.scale["limits"].get("steps", steps))
    products = 6 * parameters * steps * 4 * BATCH * TOKENS  # two sentences a pair, and as many of English
    yield f"downloads {bytes_text(files)}, disk about {bytes_text(5 * files)}, plus the encoder"
    hours = [products / rate / 3600 for rate in (CPU_FLOPS, GPU_FLOPS)]
    yield f"training {steps:,} steps of {BATCH} pairs: about {hours[0]:.1f} hours on two cores, {max(0.1, hours[1]):.1f} on one GPU"
    if steps < whole:
        yield f"the scale {project.settings['scale']} limits it to that; at scale contest it has all {whole:,} steps of the file"


def file_text(plan: Plan, encoder: str, steps: int, teacher: str | None = None) -> str:
    """Return the pair's file, with InfoNCE as method, or with a teacher distillation."""
    lines = [
        f"# {', '.join(plan.pairs)}: text to train on, and evaluations; config/README.md explains every key",
        f"pairs: [{', '.join(plan.pairs)}]",
        f"encoder: {encoder}",
        *([f"teacher: {teacher}  # both sides of a pair learn its vector of the English one"] if teacher else []),
    ]
    for key, texts in (("text", plan.taken), ("monolingual", plan.monolingual)):
        lines += [f"{key}:"] if texts else []
        lines += ["  - {" + ", ".join(f"{name}: {value}" for name, value in text.item.items()) + "}" for text in texts]
    if plan.dictionaries:
        lines.append(f"dictionaries: [{', '.join(plan.dictionaries)}]  # by which English sentences are code-switched")
    lines.append("filters:  # of the corpora of OPUS")
    scripts: dict[str, list[str]] = {}
    for lang, _, script in (code.partition("_") for code in plan.languages):
        if script in SCRIPT_NAMES:
            scripts.setdefault(lang, []).append(SCRIPT_NAMES[script])
    own = [{"character_script": {"scripts": "{" + ", ".join(f"{lang}: [{', '.join(names)}]" for lang, names in scripts.items()) + "}"}}]
    for step in [*FILTERS, *(own if scripts else [])]:
        ((rule, options),) = step.items()
        lines.append(f"  - {rule}: {{{', '.join(f'{key}: {value}' for key, value in options.items())}}}")
    known = "evaluations:  # their sentences are kept out of training"
    loss = "" if teacher else "temperature: 0.05, "
    lines += [f"most: {MOST}", f"english: {{corpus: simcse_wiki_head, weight: {WEIGHT}}}"]
    lines.append(known if plan.evaluations else "evaluations: {}  # none knows these languages")
    lines += [f"  {kind}: [{', '.join(dict.fromkeys(codes))}]" for kind, codes in plan.evaluations.items()]
    if graded := similarity_of(plan.languages):
        lines.append("similarity:")
        lines += [f'  - {{label: "{subset} (Spearman)", task: {task}, subset: {subset}, metric: spearman}}' for task, subset in graded]
    lines += [
        "lost:",
        '  - {label: "STS17 en-en (Spearman)", task: sts17_tracks, subset: en-en, metric: spearman}',
        '  - {label: "Tatoeba, six languages→en", task: tatoeba_six, subset: avg, metric: accuracy, direction: xx2en}',
        f"train: {{steps: {steps}, batch: {BATCH}, learning_rate: 1e-4, {loss}max_length: {LONGEST}, seeds: [42]}}",
    ]
    return "\n".join(lines) + "\n"
