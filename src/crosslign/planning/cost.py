"""GPU-hours and disk of the jobs that a run would start, and what earlier runs teach about the declared hours."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.config.loads import EMBED_RULES, LOADS, declared_hours, large_sets
from crosslign.config.project import Project
from crosslign.config.resources import job_need, load_of, most, uncapped_need
from crosslign.console import bytes_text, number_of
from crosslign.errors import InputError
from crosslign.files.lineage import gpu_hours, read_lineage, wall_seconds
from crosslign.files.text import read_text
from crosslign.files.walk import files_below, folders_in
from crosslign.planning.graph import own_name

Job = tuple[str, Mapping[str, str]]
"""Rule and wildcards."""

START_HOURS = 20 / 3600
"""What an encoding takes before its first sentence: imports and weights."""
PASSING = ("tokenise", "mine_search", "filter_shards")
"""Rules whose outputs lie there until the last of what reads them has."""


@dataclass(frozen=True)
class Cost:
    """What jobs are expected to cost.

    Attributes:
        on_gpus: whether the scale, or a setting, gives them GPUs.
        trainings, encodings: numbers of jobs, those that use a GPU where there are some.
        hours: GPU-hours of all whose hours are known.
        unknown: trainings of which nothing is known.
        factor: measured over declared hours of finished trainings; 1 where none has finished.
        encoding_factor: measured over expected hours of finished encodings; 1 where none has finished.
        kept_mb: what stays on disk.
        peak_mb: what is on disk at the worst moment: what stays, tokenised examples, and checkpoints, vectors and waiting rows, while
            they are needed.
    """

    on_gpus: bool
    trainings: int
    encodings: int
    hours: float
    unknown: int
    factor: float
    encoding_factor: float
    kept_mb: float
    peak_mb: float


def _measured(folder: Path) -> dict[str, float]:
    """Return the hours of each finished job below a folder of benchmarks, by the place of its file; of several tries the last."""
    found = {}
    for path in files_below(folder):
        if rows := benchmark_rows(path):
            found[path.relative_to(folder).with_suffix("").as_posix()] = rows[-1][0] / 3600
    return found


def benchmark_rows(path: Path) -> list[tuple[float, float]]:
    """Return seconds and largest memory (MB, 0 where it was not measured) of the tries in a benchmark file.

    What is not a benchmark, is half written or is gone has none: an estimate never stops a run.
    """
    try:
        text = read_text(path)
    except InputError:
        return []
    rows = []
    with suppress(csv.Error):
        for row in csv.DictReader(text.splitlines(), delimiter="\t"):
            seconds = _number(row.get("s"))
            if seconds is not None and None not in row.values():  # a line that was cut
                rows.append((seconds, _number(row.get("max_rss")) or 0.0))
    return rows


def _number(text: Any) -> float | None:
    """Return a finite number that is not negative; None for anything else, such as `-` and `NA`."""
    with suppress(TypeError, ValueError):
        if 0 <= (number := float(text)) < float("inf"):
            return number
    return None


def measured_hours(results: Path) -> dict[str, float]:
    """Return the hours of each finished training, by run: GPU-hours and all parts of one that went on, where its lineage is there."""
    found = _measured(results / "benchmarks" / "train_system")
    for folder in folders_in(results / "systems"):
        with suppress(InputError):
            run = read_lineage(folder)["run"]
            found[folder.name] = gpu_hours(run) or wall_seconds(run) / 3600
    return found


def encoding_hours(project: Project, wildcards: Mapping[str, str]) -> float:
    """Return the hours that an encoding is expected to take, by size of its encoder and text, before any was measured."""
    return START_HOURS + load_of(project, "embed", wildcards).encoding_hours


def encoding_correction(project: Project) -> tuple[float, int]:
    """Return measured over expected hours of the finished encodings that the configuration knows, and their number; 1 and 0 without any."""
    pairs = []
    for place, hours in _measured(project.paths.results / "benchmarks" / "embed").items():
        run, text_set = place.split("/")[0], place.split("/")[-1]
        if text_set in project.corpora and (run in project.encoders or run in project.systems or _is_trained(project, run)):
            pairs.append((hours, encoding_hours(project, {"run": run, "text_set": text_set})))
    expected = sum(hours for _, hours in pairs)
    return (sum(hours for hours, _ in pairs) / expected, len(pairs)) if expected else (1.0, 0)


def _is_trained(project: Project, run: str) -> bool:
    """Tell whether the configuration still has the system and the fine-tunes of a run."""
    system, *finetunes = run.rpartition("-s")[0].split("+")
    return system in project.systems and all(name in project.finetunes for name in finetunes)


def correction(project: Project) -> tuple[float, int]:
    """Return measured over declared hours of the finished trainings that declare some, and their number; 1 and 0 without any."""
    pairs = []
    for run, hours in measured_hours(project.paths.results).items():
        declared = declared_hours(project, run) if _is_trained(project, run) else None
        if declared:
            pairs.append((hours, declared))
    return (sum(hours for hours, _ in pairs) / sum(declared for _, declared in pairs), len(pairs)) if pairs else (1.0, 0)


def cost_of(project: Project, jobs: Iterable[Job], gpus: int = 1) -> Cost:
    """Return what jobs are expected to cost.

    Args:
        project: the configuration.
        jobs: rule and wildcards of every job that would start.
        gpus: jobs on GPUs that run at once, for what lies on disk while they do.
    """
    (factor, _), (encoding_factor, _) = correction(project), encoding_correction(project)
    known = measured_hours(project.paths.results)
    mean = sum(known.values()) / len(known) if known else None
    hours, unknown, kept, trainings, encodings = 0.0, 0, 0.0, 0, 0
    passing: list[float] = []
    copies = 0.0  # as if one training that waits to the end read them all
    large = set(large_sets(project))
    for rule, wildcards in jobs:
        size = job_need(project, rule, wildcards, 1).disk_mb
        if rule == "train_system":
            trainings += 1
            declared = declared_hours(project, wildcards["run"])
            expected = declared * factor if declared is not None else known.get(wildcards["run"], mean)
            unknown += expected is None
            hours += expected or 0.0
            load = load_of(project, rule, wildcards)
            kept += load.kept_mb
            passing.append(load.staged_mb)
        elif rule in PASSING:
            copies += size
        elif rule in EMBED_RULES:
            encodings += 1
            hours += encoding_hours(project, wildcards) * encoding_factor
            if wildcards["text_set"] in large:
                passing.append(size)
            else:
                kept += size
        elif rule in LOADS:
            staged = load_of(project, rule, wildcards).staged_mb
            kept += size - staged
            passing.append(staged)
    at_once = sum(sorted(passing, reverse=True)[: max(1, 2 * gpus)])
    peak = kept + copies + at_once
    return Cost(project.gpus > 0, trainings, encodings, hours, unknown, factor, encoding_factor, kept, peak)


def too_long(project: Project, jobs: Iterable[Job], tries: int) -> str:
    """Return a note on jobs that have no time, by rule; empty where all have.

    Args:
        project: the configuration.
        jobs: rule and wildcards of every job that would start.
        tries: of a job, the first included; a training goes on where the last one stopped, any other job starts from the beginning.
    """
    _, longest = most(project)
    found: dict[str, list[tuple[float, str]]] = {}
    for rule, wildcards in jobs:
        if rule != "train_system":
            if (minutes := uncapped_need(project, rule, wildcards).runtime) > longest:
                said = f"{own_name(rule, wildcards)} ({number_of(minutes, 'minute')}, {longest:,} allowed)"
                found.setdefault(rule, []).append((minutes, said))
            continue
        hours = declared_hours(project, wildcards["run"]) or 0.0
        given = sum(job_need(project, rule, wildcards, attempt).runtime for attempt in range(1, tries + 1)) / 60 if hours else 0.0
        if given < hours:
            said = f"{wildcards['run']} ({number_of(hours, 'hour')}, {number_of(tries, 'job')} of {given:g} in all)"
            found.setdefault(rule, []).append((hours * 60, said))
    told = [f"{number_of(len(late), 'job')} of {rule}, such as {max(late)[1]}" for rule, late in sorted(found.items())]
    return f"too little time for {'; '.join(told)}: raise max_runtime, or for trainings the profile's retries" if told else ""


def no_memory(project: Project, jobs: Iterable[Job]) -> InputError | None:
    """Return an error that names the job that asks for most memory, and how much, where no machine of the run has it; else None."""
    largest, _ = most(project)
    asked = [(uncapped_need(project, rule, wildcards).mem_mb, rule, own_name(rule, wildcards)) for rule, wildcards in jobs]
    memory, rule, name = max(asked, default=(0, "", ""))
    if memory <= largest:
        return None
    return InputError(
        f"too little memory for {name}",
        where=rule,
        why=f"it needs about {memory / 1000:,.0f} GB, and the limit of a job is {largest / 1000:,.0f} GB",
        do="Make it smaller (`rows`, `max_per_pair`, a smaller size), or set max_mem_mb to the memory of your nodes",
    )


def no_room(project: Project, jobs: Iterable[Job]) -> str:
    """Return a note on the job that may write more temporary files than this machine's TMPDIR has room for; empty where it has.

    Training sets are shuffled and drawn there: they declare it with the disk of what they write.
    """
    asked = [
        (job_need(project, rule, wildcards, 1).disk_mb, own_name(rule, wildcards)) for rule, wildcards in jobs if rule == "build_examples"
    ]
    largest, name = max(asked, default=(0, ""))
    place = tempfile.gettempdir()
    free = shutil.disk_usage(place).free / 1e6
    if largest <= free:
        return ""
    needs = f"{name} may need {bytes_text(largest * 1e6)} for temporary files"
    return f"{needs}, and {place} has {bytes_text(free * 1e6)} free: set TMPDIR to a folder with enough space (on a cluster, on every node)"


def cost_text(cost: Cost) -> str:
    """Return the cost in one line: of jobs without GPUs their numbers and the disk, since their time is counted by stage."""
    jobs = f"{number_of(cost.trainings, 'training')}, {number_of(cost.encodings, 'encoding')}"
    text = f"about {cost.hours:.1f} GPU-hours ({jobs})" if cost.on_gpus else jobs
    if cost.on_gpus and cost.unknown:
        text += f", {number_of(cost.unknown, 'training')} of unknown length"
    if cost.on_gpus and cost.factor != 1.0:
        text += f", declared hours times {cost.factor:.2f} as measured"
    if cost.on_gpus and cost.encoding_factor != 1.0:
        text += f", encodings times {cost.encoding_factor:.2f} as measured"
    return f"{text}; disk: {bytes_text(cost.kept_mb * 1e6)} kept, {bytes_text(cost.peak_mb * 1e6)} at most"
