"""What a run would do and cost, and what the runs before it did cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslign.config.data_plan import FileNeed
from crosslign.config.project import Project
from crosslign.config.resources import RULES, STAND_IN_RULE, stage_of
from crosslign.console import duration, number_of
from crosslign.files.walk import files_below
from crosslign.planning.cost import (
    Job,
    benchmark_rows,
    correction,
    cost_of,
    cost_text,
    encoding_correction,
    measured_hours,
    no_memory,
    too_long,
)
from crosslign.planning.data import data_lines
from crosslign.planning.mining import mining_lines

STAGES = tuple(dict.fromkeys(("fetch", STAND_IN_RULE, *map(stage_of, RULES))))
"""Names of rules by which jobs are counted, in the order of a run."""

ON_DEVICES = ("train_system", "embed")
"""Stages whose jobs compute on GPUs where the scale has some; a plan counts their hours by themselves."""

TRIES = 4
"""Jobs that a training may go on in, the first included: `retries` of the profile for Slurm, and one."""


@dataclass(frozen=True)
class Measured:
    """What finished jobs of one rule took: their number, seconds in all, and the largest memory (MB)."""

    jobs: int
    seconds: float
    peak_mb: float

    @property
    def mean(self) -> float:
        """Seconds of one job."""
        return self.seconds / self.jobs


def measured(results: Path) -> dict[str, Measured]:
    """Return what each rule's finished jobs took, from the benchmark files below a results folder."""
    rows: Mapping[str, list[tuple[float, float]]] = defaultdict(list)
    for path in files_below(results / "benchmarks"):
        rows[path.relative_to(results / "benchmarks").parts[0]] += benchmark_rows(path)
    rows = {rule: found for rule, found in rows.items() if found}
    return {rule: Measured(len(r), sum(s for s, _ in r), max(m for _, m in r)) for rule, r in sorted(rows.items())}


def means(project: Project) -> dict[str, float]:
    """Return the mean seconds of a job by stage: as measured where some have finished, else as the scale expects them."""
    found: dict[str, float] = dict(project.scale.get("expected_seconds", {}))
    return found | {rule: row.mean for rule, row in measured(project.paths.results).items()}


def plan_text(
    project: Project,
    jobs: Mapping[str, int],
    cached: Mapping[str, int],
    jobs_to_run: Sequence[Job],
    needs: Sequence[FileNeed],
    wall: Iterable[str] = (),
    gpus: int = 1,
) -> str:
    """Return what a run would do: jobs by rule with the time that they are expected to take, GPU-hours, and files.

    Args:
        project: the configuration.
        jobs: jobs that would start, by rule.
        cached: jobs whose results are there, by rule.
        jobs_to_run: rule and wildcards of the jobs that would run.
        needs: files that the targets need.
        wall: lines on the time that all takes together.
        gpus: jobs on GPUs that run at once, for what lies on disk while they do.
    """
    before, expected = measured(project.paths.results), project.scale.get("expected_seconds", {})
    lines = [
        f"scale {project.settings['scale']}, papers {', '.join(project.settings['papers'])}",
        f"{'jobs':<20} {'to run':>6} {'cached':>7}",
    ]
    elsewhere = ON_DEVICES if project.gpus else ()
    for rule in sorted({*jobs, *cached}, key=lambda name: (STAGES.index(name) if name in STAGES else len(STAGES), name)):
        mean = None if rule in elsewhere else before[rule].mean if rule in before else expected.get(rule)
        origin = f"measured on {number_of(before[rule].jobs, 'job')}" if rule in before else "expected at this scale"
        number = jobs.get(rule, 0)
        told = f"  {duration(number * mean)} in all, {origin}" if mean and number else ""
        lines.append(f"  {rule:<18} {number:>6} {cached.get(rule, 0):>7}{told}")
    if not jobs:
        lines.append("  nothing to run: all results exist")
    cost = cost_of(project, jobs_to_run, gpus)
    if cost.trainings or cost.encodings:
        lines.append(cost_text(cost))
    if refusal := no_memory(project, jobs_to_run):
        lines.append(f"a run would fail at its start: {refusal}")
    if late := too_long(project, jobs_to_run, TRIES):
        lines.append(f"on a cluster: {late}")
    lines += mining_lines(project, jobs_to_run)
    return "\n".join([*lines, *wall, *data_lines(needs)])


def status_text(results: Path, project: Project | None = None) -> str:
    """Return what the finished jobs of a results folder took, by rule, with the largest memory; and how that corrects the plan.

    Args:
        results: results with their scale.
        project: the configuration that declares the trainings' hours.
    """
    rows = measured(results)
    lines = [
        f"{results}: {number_of(sum(row.jobs for row in rows.values()), 'finished job')}, "
        f"{duration(sum(row.seconds for row in rows.values()))} in all"
    ]
    for rule in sorted(rows, key=lambda name: -rows[name].seconds):
        row = rows[rule]
        jobs = f"{row.jobs:>5} {'job' if row.jobs == 1 else 'jobs':<4}"
        lines.append(f"  {rule:<18} {jobs}  {duration(row.seconds):>14}  mean {row.mean:8.1f} s  peak {row.peak_mb:8.0f} MB")
    encodings = rows["embed"].seconds / 3600 if "embed" in rows else 0.0
    hours = sum(measured_hours(results).values()) + encodings
    lines.append(f"trainings and encodings took {hours:.2f} hours on their devices")
    factor, count = correction(project) if project else (1.0, 0)
    if count:
        lines.append(
            f"{number_of(count, 'finished training')} took {factor:.2f} times their declared hours: `crosslign plan` uses that factor"
        )
    factor, count = encoding_correction(project) if project else (1.0, 0)
    if count:
        lines.append(
            f"{number_of(count, 'finished encoding')} took {factor:.2f} times the expected time: `crosslign plan` uses that factor"
        )
    return "\n".join(lines)
