"""What there is for a pair of languages, without network: OPUS by the catalogue inside opustools, our own catalog, and evaluation sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from crosslign.config.catalog import bytes_of, file_names
from crosslign.config.pairs import FILTERS, FLORES, LONGEST, MOST, TATOEBA, WEIGHT
from crosslign.config.project import Project
from crosslign.console import as_columns, bytes_text
from crosslign.corpora.sources.opus import catalogued
from crosslign.errors import InputError
from crosslign.languages import ISO_639_3, normalise

LEAST = 2_000
"""Sentence pairs below which no encoder is trained on a pair."""
ENOUGH = (500_000, 100_000, 100_000)
"""Sentence pairs from which on no further corpus is taken, by rank."""
FEW = 20_000
"""Sentence pairs of two languages below which text of each with English is taken too."""
SMALLEST = 100
"""Sentence pairs of a corpus that is worth a download."""
BATCH, FEWEST_STEPS, MOST_STEPS = 64, 200, 3_000
READ_BYTES = 300_000_000
"""Files of a corpus that a plan takes by itself; larger ones are named."""
CARED_FOR = (
    "Tatoeba", "TED2020", "NeuLab-TedTalks", "GlobalVoices", "News-Commentary", "Europarl", "bible-uedin", "QED", "wikimedia", "GoURMET",
    "tico-19", "UNPC", "MultiUN", "WMT-News", "infopankki", "Tanzil", "SETIMES", "TedTalks", "EMEA", "JRC-Acquis",
)  # fmt: skip
"""Corpora of OPUS that people wrote or checked, as sentences; the rest is crawled."""
STRINGS = ("GNOME", "KDE4", "KDEdoc", "Ubuntu", "PHP", "OpenOffice", "Mozilla-I10n", "XLEnt", "EUbookshop")
"""Corpora of strings of software, names, or scans: taken last."""
TOKENS, CPU_FLOPS, GPU_FLOPS = 25, 5e11, 5e13
"""Tokens of a sentence; operations a second of two cores and of one GPU, six a token and parameter (of all) being counted. Rough."""


@dataclass(frozen=True)
class Text:
    """Parallel text of two languages.

    Attributes:
        pair: the two languages, as the user named them.
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
        taken: what is trained on.
        evaluations: codes of the languages by evaluation set.
        lacking: languages of which no evaluation set knows anything.
    """

    pairs: list[str]
    found: list[Text]
    taken: list[Text] = field(default_factory=list)
    evaluations: dict[str, list[str]] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)


def spellings(code: str) -> list[str]:
    """Return the codes of two and three letters that data sets use for a language, the given one first."""
    from lingua import Language

    known = {(one.iso_code_639_1.name.lower(), one.iso_code_639_3.name.lower()) for one in Language.all()}
    known |= {(two, three) for three, two in ISO_639_3.items()}
    two = next((short for short, long in sorted(known) if code in (short, long)), code)
    return list(dict.fromkeys([code, two, *sorted(long for short, long in known if short == two)]))


def _number(value: Any) -> int:
    return int(value) if str(value).isdecimal() else 0


def _rank(name: str) -> int:
    """Return the rank of a corpus of OPUS."""
    return 0 if name in CARED_FOR else 2 if name in STRINGS else 1


def of_opus(pair: str) -> list[Text]:
    """Return the newest version of each corpus of OPUS that has a pair, as Moses lines."""
    left, right = (spellings(code) for code in pair.split("-"))
    found: dict[str, Text] = {}
    for one in left:
        for other in right:
            first, second = sorted((one, other))
            for row in catalogued({"source": first, "target": second, "preprocessing": "moses", "latest": "True"}):
                name, sentences, size = str(row["corpus"]), _number(row["alignment_pairs"]), 1024 * _number(row["size"])
                item = {"opus": name, "version": str(row["version"]), "pair": f"{row['source']}-{row['target']}", "sentences": sentences}
                if name not in found or sentences > found[name].sentences:
                    found[name] = Text(pair, f"OPUS {name}", {**item, "about_bytes": max(1, size)}, sentences, size, rank=_rank(name))
    return list(found.values())


def _year(text: str) -> str:
    found = re.findall(r"\b(?:19|20)\d\d\b", text)
    return found[-1] if found else "unknown"


def of_catalog(project: Project, pair: str) -> list[Text]:
    """Return corpora of the catalog with both languages that can be fetched by anybody; dictionaries and the project's own are none."""
    langs = {normalise(code) for code in pair.split("-")}
    found = []
    for name, entry in project.corpora.items():
        usable = entry["kind"] in ("bitext", "multiway") and entry.get("access", "open") == "open" and name not in project.evaluated_alone
        if not usable or entry["reader"] == "dictionary" or not langs <= set(entry["langs"]) or name.startswith("pair_"):
            continue
        source = project.sources[entry["source"]]
        wanted = set(file_names(source, entry))
        sizes = [bytes_of(file) for file in source.get("files", []) if file["name"] in wanted]
        if "local" not in source:
            text = Text(pair, name, {"corpus": name}, 0, int(sum(sizes)), entry["licence"], _year(entry.get("citation", "")))
            found.append(replace(text, rank=_rank(source["opus"]) if "opus" in source else 0))
    return found


def direct_text(project: Project, pair: str) -> list[Text]:
    """Return all text of a pair, each corpus once: of OPUS, by our catalog's entry where it has one, and what only the catalog has."""
    licences = {source["opus"]: source for source in project.sources.values() if "opus" in source}
    opus, found = {str(text.item["opus"]): text for text in of_opus(pair)}, []
    for text in of_catalog(project, pair):
        twin = opus.pop(str(project.sources[project.corpora[text.name]["source"]].get("opus")), None)
        found.append(replace(text, sentences=twin.sentences, rank=twin.rank) if twin else text)
    for name, text in opus.items():
        known = licences.get(name, {})
        found.append(replace(text, licence=known.get("licence", "unknown"), year=_year(known.get("citation", ""))))
    return found


def dictionaries(project: Project, pair: str) -> list[str]:
    """Return the dictionaries of the catalog between two languages."""
    langs = {normalise(code) for code in pair.split("-")}
    return [name for name, entry in project.corpora.items() if entry.get("reader") == "dictionary" and langs == set(entry["langs"])]


def evaluations_of(project: Project, code: str) -> dict[str, list[str]]:
    """Return how evaluation sets with English as a pivot call a language, by set; only those that have it."""
    names = {source: {file["name"] for file in project.sources[source]["files"]} for source in (TATOEBA, FLORES)}
    known = spellings(code)
    tatoeba = [three for three in known if f"tatoeba.{three}-eng.{three}" in names[TATOEBA]]
    flores = [name.partition(".")[0] for name in sorted(names[FLORES]) if name.partition("_")[0] in known]
    flores += [f"{three}_Hans" for three in known if three == "zho"] if not flores and "cmn" in known else []
    return {kind: codes for kind, codes in (("tatoeba", tatoeba[:1]), ("flores", flores)) if codes}


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
        InputError: too little parallel text; says how much there is, and what would help.
    """
    plan = Plan([], [])
    for pair in pairs:
        direct = direct_text(project, pair)
        taken, by_english = choose(direct), {}
        if sum(text.sentences for text in taken) < FEW and "en" not in pair.split("-"):
            by_english = {"-".join(sorted(("en", code))): direct_text(project, f"en-{code}") for code in pair.split("-")}
        there = sum(text.sentences for text in taken)
        if there < LEAST and not any(text.size for text in taken if "corpus" in text.item):
            raise _too_little(project, pair, direct, by_english)
        plan.pairs += [pair]
        plan.found += direct
        plan.taken += taken
        for pivot, texts in by_english.items():
            plan.found += texts
            if (more := choose(texts)) and pivot not in plan.pairs:
                plan.pairs.append(pivot)
                plan.taken += more
    for code in dict.fromkeys(code for pair in pairs for code in pair.split("-") if normalise(code) != "en"):
        sets = evaluations_of(project, code)
        for kind, codes in sets.items():
            plan.evaluations.setdefault(kind, []).extend(codes)
        plan.lacking += [] if sets else [code]
    return plan


def _too_little(project: Project, pair: str, direct: list[Text], by_english: Mapping[str, list[Text]]) -> InputError:
    """Return the error for a pair that has too little text."""
    counts = ", ".join(f"{text.name} {text.sentences:,}" for text in direct) or "no corpus"
    pivots = [f"{pivot} {sum(text.sentences for text in texts):,}" for pivot, texts in by_english.items()]
    helps = [f"pairs with English ({', '.join(pivots)}): crosslign pair {pivots[0].split()[0]} ..."] if pivots else []
    helps += [f"the dictionary {name}, by code-switching (docs/filters-and-views.md)" for name in dictionaries(project, pair)]
    helps += ["two files of your own (docs/add-a-corpus.md) under `text:`", "monolingual text to mine (docs/mine-your-own.md)"]
    why = f"{LEAST:,} sentence pairs are needed; there are: {counts}"
    return InputError(f"too little parallel text of {pair}", where="crosslign pair", why=why, do="What would help: " + "; ".join(helps))


def steps_of(plan: Plan) -> int:
    """Return the optimiser steps of one pass over what is trained on, within bounds."""
    rows = sum(min(text.sentences, MOST) for text in plan.taken)
    return max(FEWEST_STEPS, min(MOST_STEPS, rows // BATCH))


def table_lines(plan: Plan) -> Iterator[str]:
    """Yield all text by pair, with what is taken of it."""
    taken = {id(text) for text in plan.taken}
    for pair, texts in groupby(plan.found, key=lambda text: text.pair):
        rows = [("", "text of " + pair, "sentences", "files", "licence", "year")]
        for text in sorted(texts, key=lambda one: (id(one) not in taken, -one.sentences, one.name)):
            counts = (f"{text.sentences:,}" if text.sentences else "?", bytes_text(text.size) if text.size else "?")
            rows.append(("+" if id(text) in taken else "", text.name, *counts, text.licence[:40], text.year))
        yield from as_columns(rows, right=(2, 3))


def cost_lines(project: Project, plan: Plan, encoder: str, steps: int) -> Iterator[str]:
    """Yield downloads, disk and hours of the training, roughly."""
    parameters = 1e6 * float(project.encoders[encoder].get("parameters_m", 100))
    files = sum(text.size for text in plan.taken)
    products = 6 * parameters * steps * 4 * BATCH * TOKENS  # two sentences a pair, and as many of English
    yield f"downloads {bytes_text(files)}, disk about {bytes_text(5 * files)} beside the encoder"
    hours = [products / rate / 3600 for rate in (CPU_FLOPS, GPU_FLOPS)]
    yield f"training {steps:,} steps of {BATCH} pairs: about {hours[0]:.1f} hours on two cores, {max(0.1, hours[1]):.1f} on one GPU"


def file_text(plan: Plan, encoder: str, steps: int, teacher: str | None = None) -> str:
    """Return the pair's file, with InfoNCE as method, or with a teacher distillation."""
    lines = [
        f"# {', '.join(plan.pairs)}: text to train on, and evaluations; config/README.md explains every key. Change what you like.",
        f"pairs: [{', '.join(plan.pairs)}]",
        f"encoder: {encoder}",
        *([f"teacher: {teacher}  # both sides of a pair learn its vector of the English one"] if teacher else []),
        "text:",
    ]
    for text in plan.taken:
        lines.append("  - {" + ", ".join(f"{key}: {value}" for key, value in text.item.items()) + "}")
    lines.append("filters:  # of the corpora of OPUS")
    for step in FILTERS:
        ((rule, options),) = step.items()
        lines.append(f"  - {rule}: {{{', '.join(f'{key}: {value}' for key, value in options.items())}}}")
    known = "evaluations:  # their sentences are kept out of training"
    loss = "" if teacher else "temperature: 0.05, "
    lines += [f"most: {MOST}", f"english: {{corpus: simcse_wiki_head, weight: {WEIGHT}}}"]
    lines.append(known if plan.evaluations else "evaluations: {}  # none knows these languages")
    lines += [f"  {kind}: [{', '.join(dict.fromkeys(codes))}]" for kind, codes in plan.evaluations.items()]
    lines += [
        "lost:",
        '  - {label: "STS17 en-en (Spearman)", task: sts17_tracks, subset: en-en, metric: spearman}',
        '  - {label: "Tatoeba, six languages→en", task: tatoeba_six, subset: avg, metric: accuracy, direction: xx2en}',
        f"train: {{steps: {steps}, batch: {BATCH}, learning_rate: 1e-4, {loss}max_length: {LONGEST}, seeds: [42]}}",
    ]
    return "\n".join(lines) + "\n"
