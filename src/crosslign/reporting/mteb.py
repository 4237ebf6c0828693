"""Scores in the JSON form of MTEB's results, for the tasks that exist there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.files import write_json
from crosslign.languages import ISO_639_3, normalise, scripts_of
from crosslign.tasks.records import Record
from crosslign.tasks.write import read_scores

STS = {"spearman": "cosine_spearman", "pearson": "cosine_pearson"}
MINED = {"weighted_f1": "f1", "weighted_precision": "precision", "weighted_recall": "recall", "accuracy": "accuracy"}
SCRIPTS = {
    "Arabic": "Arab", "Armenian": "Armn", "Bengali": "Beng", "Cyrillic": "Cyrl", "Devanagari": "Deva", "Georgian": "Geor", "Greek": "Grek",
    "Gurmukhi": "Guru", "Han": "Hans", "Hangul": "Hang", "Hebrew": "Hebr", "Khmer": "Khmr", "Lao": "Laoo", "Latin": "Latn",
    "Malayalam": "Mlym", "Myanmar": "Mymr", "Sinhala": "Sinh", "Tamil": "Taml", "Telugu": "Telu", "Thai": "Thai",
}  # fmt: skip
"""ISO 15924 codes of the scripts that `crosslign.languages` names."""
ISO_639_1 = {two: three for three, two in ISO_639_3.items()}


@dataclass(frozen=True)
class Form:
    """How a task's records become a result of MTEB.

    Attributes:
        name: MTEB's task.
        metrics: MTEB's name of each metric; the first one is its main score.
        revision: of its data set; empty where the official files were read.
        protocols: protocols whose records count.
        direction: direction whose records count.
        subsets: MTEB's names of subsets that are called otherwise.
        pivot: what is put behind a subset's name.
    """

    name: str
    metrics: Mapping[str, str]
    revision: str = ""
    protocols: tuple[str, ...] = ("",)
    direction: str = ""
    subsets: Mapping[str, str] = field(default_factory=dict)
    pivot: str = ""


_STS17 = "af5e6fb845001ecf41f4c1e033ce921939a2a68d"
FORMS: dict[str, Form] = {
    **{f"sts{year}": Form(f"STS{year}", STS, protocols=("all",), subsets={"all": "default"}) for year in range(12, 17)},
    "stsb": Form("STSBenchmark", STS, subsets={"en": "default"}),
    "sickr": Form("SICK-R", STS, subsets={"en": "default"}),
    "sts17": Form("STS17", STS, subsets={"ar-en": "en-ar", "tr-en": "en-tr"}),
    "sts17_mteb": Form("STS17", STS, _STS17),
    "sts22": Form("STS22", STS, "6d1ba47164174a496b7fa5d3569dae26a6813b80"),
    "tatoeba": Form("Tatoeba", MINED, protocols=("", "mteb"), direction="xx2en", pivot="-eng"),
    "bucc": Form("BUCC", MINED, protocols=("mteb",)),
    "mtop": Form("MTOPDomainClassification", {"accuracy": "accuracy"}, "d80d48c1eb48d3562165c59d59d0034df9fff0bf"),
}
"""Forms by task id."""


def language_codes(subset: str) -> list[str]:
    """Return the languages of a subset as MTEB writes them, such as `deu-Latn`; English for a subset that names none."""
    codes = ["en"] if subset == "default" else list(dict.fromkeys(subset.split("-")))
    return [f"{ISO_639_1.get(normalise(code), code)}-{SCRIPTS.get(scripts_of(code)[0], 'Latn')}" for code in codes]


def as_mteb(task: str, records: Sequence[Record], averages: Sequence[str], data: str, version: str) -> dict[str, Any] | None:
    """Return a result of MTEB, or None for a task that it has not, or without a defined main score.

    Args:
        task: task id.
        records: all of its records.
        averages: names of its averages, which MTEB makes itself.
        data: hash of the data, in place of a revision where the official files were read.
        version: what made the scores.
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
        {"hf_subset": subset, "languages": language_codes(subset), "main_score": values[main], **dict(sorted(values.items()))}
        for subset, values in sorted(found.items())
        if main in values
    ]
    if not scores:
        return None
    return {
        "dataset_revision": form.revision or data,
        "task_name": form.name,
        "mteb_version": version,
        "scores": {"test": scores},
        "evaluation_time": None,
        "kg_co2_emissions": None,
    }


def export(results: Path, out: Path, averages: Mapping[str, Sequence[str]]) -> Iterator[Path]:
    """Write every score file of a results folder that has a form of MTEB, and yield the files written.

    They lie in `<out>/<run>__<readout>/<checkpoint hash>/<task>.json`, with `model_meta.json` beside them.

    Args:
        results: a results folder with its scale.
        out: folder of the results in MTEB's form.
        averages: names of the averages of each task.
    """
    for score in sorted((results / "scores").glob("*/*/*/*.json")):
        if score.stem not in FORMS:
            continue
        context, records = read_scores(score)
        result = as_mteb(score.stem, records, averages.get(score.stem, ()), context["data_manifest_sha"], "crosslign")
        if result is not None:
            folder = out / f"{context['run_id']}__{context['readout']}" / context["checkpoint_sha"]
            write_json(folder / "model_meta.json", {"name": f"crosslign/{context['run_id']}", "revision": context["checkpoint_sha"]})
            write_json(folder / f"{result['task_name']}.json", result)
            yield folder / f"{result['task_name']}.json"
