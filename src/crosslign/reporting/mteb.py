"""Scores in the JSON form of MTEB's results, for the tasks that exist there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.config.known_languages import SCRIPT_NAMES
from crosslign.files import write_json
from crosslign.files.walk import files_below
from crosslign.languages import ISO_639_3, normalise, scripts_of
from crosslign.tasks.records import Record
from crosslign.tasks.score import read_scores

STS = {"spearman": "cosine_spearman", "pearson": "cosine_pearson"}
PAIRS = {"average_precision": "cosine_ap", "accuracy": "cosine_accuracy"}
MINED = {"weighted_f1": "f1", "weighted_precision": "precision", "weighted_recall": "recall", "accuracy": "accuracy"}
SCRIPTS = {name: code for code, name in reversed(SCRIPT_NAMES.items())}
"""ISO 15924 codes of the scripts that `crosslign.languages` names."""
ISO_639_1 = {two: three for three, two in ISO_639_3.items()}


@dataclass(frozen=True)
class Form:
    """How a task's records become a result of MTEB.

    Attributes:
        name: MTEB's task.
        metrics: MTEB's name of each metric; the first one is its main score.
        revision: of its data set; empty where the official files were read, or not all of its rows.
        protocols: protocols whose records count.
        direction: direction whose records count.
        subsets: MTEB's names of subsets that are called otherwise; empty for one that it has not.
        pivot: what is put behind a subset's name.
        split: of the data set.
        codes: how MTEB writes languages here, where it is not as everywhere.
    """

    name: str
    metrics: Mapping[str, str]
    revision: str = ""
    protocols: tuple[str, ...] = ("",)
    direction: str = ""
    subsets: Mapping[str, str] = field(default_factory=dict)
    pivot: str = ""
    split: str = "test"
    codes: Mapping[str, str] = field(default_factory=dict)


_TATOEBA = {
    **dict.fromkeys(("bel", "mhr", "mkd", "mon", "orv", "srp", "tat"), "Cyrl"), **dict.fromkeys(("arq", "arz", "uig"), "Arab"),
    **dict.fromkeys(("awa", "max"), "Deva"), "amh": "Ethi", "ber": "Tfng", "hye": "Armn", "jpn": "Jpan", "khm": "Khmr", "wuu": "Hans",
    "yid": "Hebr", "yue": "Hant",
}  # fmt: skip
"""Scripts of Tatoeba's languages that are not those of the language's first script here."""
_PAWS_X = {"ja": "jpn-Hira"}
ENGLISH = {
    "sts12": ("STS12", "a0d554a64d88156834ff5ae9920b964011b16384"),
    "sts13": ("STS13", "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    "sts14": ("STS14", "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    "sts15": ("STS15", "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"),
    "sts16": ("STS16", "4d8694f8f0e0100860b497b999b3dbed754a0513"),
    "stsb": ("STSBenchmark", "b0fddb56ed78048fa8b90373c8a3cfc37b684831"),
    "sickr": ("SICK-R", "20a6d6f312dd54037fe07a32d58e5e168867909d"),
}
"""Tasks of English similarity that read MTEB's own files: its name and the revision of its data."""
_STS17 = "af5e6fb845001ecf41f4c1e033ce921939a2a68d"
FORMS: dict[str, Form] = {
    **{f"{task}_mteb": Form(name, STS, revision, subsets={"en": "default"}) for task, (name, revision) in ENGLISH.items()},
    "sts17_mteb": Form("STS17", STS, _STS17),
    "sts22": Form("STS22", STS, "6d1ba47164174a496b7fa5d3569dae26a6813b80"),
    **{
        name: Form("Tatoeba", MINED, protocols=("", "mteb"), direction="xx2en", pivot="-eng", codes=_TATOEBA)
        for name in ("tatoeba", "tatoeba_six", "tatoeba_zh")
    },
    "bucc": Form("BUCC", MINED, protocols=("mteb",)),
    **{
        name: Form("FloresBitextMining", MINED, protocols=("", "mteb"), direction="xx2en", pivot="-eng_Latn", split="devtest")
        for name in ("flores200_part", "flores200_devtest")
    },
    "mtop": Form("MTOPDomainClassification", {"accuracy": "accuracy"}, "d80d48c1eb48d3562165c59d59d0034df9fff0bf"),
    "paws_x_pairs": Form("PawsXPairClassification", PAIRS, codes=_PAWS_X),
}
"""Forms by task id: tasks with MTEB's items, text and metric, and no others (docs/protocols.md, MTEB's form)."""


def language_codes(subset: str, codes: Mapping[str, str] | None = None) -> list[str]:
    """Return the languages of a subset as MTEB writes them, such as `deu-Latn`; English for a subset that names none.

    Args:
        subset: codes joined by `-`.
        codes: how a language is written, or its script alone, where it is not as everywhere.
    """
    named = ["en"] if subset == "default" else list(dict.fromkeys(subset.split("-")))
    return [_language(code, (codes or {}).get(code, "")) for code in named]


def _language(code: str, told: str) -> str:
    if "-" in told or "_" in code:  # FLORES writes languages with their scripts
        return told or code.replace("_", "-")
    return f"{ISO_639_1.get(normalise(code), code)}-{told or SCRIPTS.get(scripts_of(code)[0], 'Latn')}"


def as_mteb(task: str, records: Sequence[Record], averages: Sequence[str], data: str) -> dict[str, Any] | None:
    """Return a result of MTEB, or None for a task that it has not, or without a defined main score.

    Args:
        task: task id.
        records: all of its records.
        averages: names of its averages, which MTEB makes itself.
        data: hash of the data, in place of a revision where a form has none.
    """
    form = FORMS.get(task)
    if form is None:
        return None
    found: dict[str, dict[str, float]] = {}
    for record in records:
        known = record.metric in form.metrics and record.protocol in form.protocols and record.direction == form.direction
        subset = form.subsets.get(record.subset, "" if record.subset in averages else record.subset + form.pivot)
        if known and subset and record.value is not None:
            found.setdefault(subset, {})[form.metrics[record.metric]] = record.value
    main = next(iter(form.metrics.values()))
    scores = [
        {"hf_subset": subset, "languages": language_codes(subset, form.codes), "main_score": values[main], **dict(sorted(values.items()))}
        for subset, values in sorted(found.items())
        if main in values
    ]
    if not scores:
        return None
    return {
        "dataset_revision": form.revision or data,
        "task_name": form.name,
        "mteb_version": "crosslign",
        "scores": {form.split: scores},
        "evaluation_time": None,
        "kg_co2_emissions": None,
    }


def _size(result: Mapping[str, Any]) -> int:
    return sum(len(rows) for rows in result["scores"].values())


def merged(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one result of several of the same task of MTEB: the largest, and what the others add to it in subsets or splits.

    Revisions of all data sets that something was taken from are joined by `+`.
    """
    first, *others = sorted(results, key=_size, reverse=True)
    scores, revisions = {split: list(rows) for split, rows in first["scores"].items()}, [first["dataset_revision"]]
    for other in others:
        for split, rows in other["scores"].items():
            known = {row["hf_subset"] for row in scores.get(split, [])}
            if new := [row for row in rows if row["hf_subset"] not in known]:
                scores[split] = sorted([*scores.get(split, []), *new], key=lambda row: str(row["hf_subset"]))
                revisions.append(other["dataset_revision"])
    return {**first, "dataset_revision": "+".join(dict.fromkeys(revisions)), "scores": dict(sorted(scores.items()))}


def export(
    results: Path,
    out: Path,
    averages: Mapping[str, Sequence[str]],
    check: Callable[[str], None] = lambda profile: None,
    require: Callable[[Path], None] = lambda score: None,
) -> Iterator[Path]:
    """Write every score file of a results folder that has a form of MTEB, and yield the files written.

    They lie in `<out>/crosslign__<run>__<readout>/<checkpoint hash>/<task>.json`, with `model_meta.json` beside them: where MTEB looks for
    the results of a model `crosslign/<run>__<readout>`, one model for each way to read a run.

    Args:
        results: a results folder with its scale.
        out: folder of the results in MTEB's form.
        averages: names of the averages of each task.
        check: refuses a scale whose scores are not of all items.
        require: refuses a score file that is not as it was made.
    """
    found: dict[Path, list[dict[str, Any]]] = {}
    for score in files_below(results / "scores"):
        if score.suffix != ".json" or score.stem not in FORMS or len(score.relative_to(results).parts) != 5:
            continue
        require(score)
        context, records = read_scores(score)
        check(context["profile"])
        result = as_mteb(score.stem, records, averages.get(score.stem, ()), context["data_manifest_sha"])
        if result is not None:
            model = f"crosslign/{context['run_id']}__{context['readout']}"
            folder = out / model.replace("/", "__") / context["checkpoint_sha"]
            write_json(folder / "model_meta.json", {"name": model, "revision": context["checkpoint_sha"]})
            found.setdefault(folder / f"{result['task_name']}.json", []).append(result)
    for path, of_task in found.items():
        write_json(path, merged(of_task))
        yield path
