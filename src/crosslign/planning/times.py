"""How long each job of a plan is expected to take, the chain of jobs that decides, and the time on so many GPUs and cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from crosslign.config.loads import EMBED_RULES, declared_hours
from crosslign.config.priorities import job_priority
from crosslign.config.project import Project
from crosslign.config.resources import load_of, stage_of
from crosslign.config.targets import target_names
from crosslign.console import duration, number_of
from crosslign.planning.cost import START_HOURS, correction, encoding_correction, encoding_hours
from crosslign.planning.graph import Graph, Planned, own_name
from crosslign.planning.mining import MINING_SECONDS
from crosslign.planning.simulation import Task, longest_path, simulate

CPU_SECONDS_A_MB = {"build_corpus": 0.2, "build_evaluation": 0.2, "build_view": 1.0, "build_examples": 0.2}
SCORE_SECONDS, OTHER_SECONDS = 20.0, 10.0
DOWNLOADED_MB_A_SECOND = 25.0
MOST_TEXT_MB = 20_000.0
"""Of more text no corpus takes longer: a limit of its recipe cuts it."""
QUEUE = 200
"""Jobs that may run at once."""
SHORTEST = 0.02
"""Share of the chain's time below which a job of it is not named."""


def job_seconds(project: Project, job: Planned, means: Mapping[str, float]) -> float:
    """Return the expected seconds of a job.

    Args:
        project: the configuration.
        job: of its graph.
        means: seconds of finished jobs, or of what the scale expects, by stage; else, and on GPUs always, the size of the work decides.
    """
    rule, wildcards = job.rule, job.wildcards
    if project.gpus and rule == "train_system":
        return 3600 * (declared_hours(project, wildcards["run"]) or 1.0) * correction(project)[0]
    if project.gpus and rule in EMBED_RULES:
        return 3600 * (encoding_hours(project, wildcards) - START_HOURS) * encoding_correction(project)[0]
    if (mean := means.get(stage_of(rule))) is not None and rule not in MINING_SECONDS:  # each is of a user's own size
        return mean
    return SCORE_SECONDS if rule == "score" else OTHER_SECONDS + _work_seconds(project, rule, wildcards)


def _work_seconds(project: Project, rule: str, wildcards: Mapping[str, str]) -> float:
    """Return the seconds of a job's work by the size of its text, where they are known."""
    if rule == "fetch":
        return load_of(project, rule, wildcards).text_mb / DOWNLOADED_MB_A_SECOND
    if rule in CPU_SECONDS_A_MB:
        return CPU_SECONDS_A_MB[rule] * min(load_of(project, rule, wildcards).text_mb, MOST_TEXT_MB)
    return MINING_SECONDS[rule](load_of(project, rule, wildcards)) if rule in MINING_SECONDS else 0.0


def tasks_of(project: Project, graph: Graph, means: Mapping[str, float]) -> dict[str, Task]:
    """Return the jobs with their expected times; those that are done, and targets, take none."""
    made, targets = {}, {"all", *target_names(project)}
    for name, job in graph.items():
        gpus = project.gpus if job.rule == "train_system" or job.rule in EMBED_RULES or job.rule in MINING_SECONDS else 0
        seconds = job_seconds(project, job, means) if job.to_run and job.rule not in targets else 0.0
        made[name] = Task(seconds, gpus, 1 if job.to_run else 0, job.after, job_priority(project, job.rule, job.wildcards))
    return made


def wall_lines(project: Project, graph: Graph, tasks: Mapping[str, Task], gpus: int, cores: int) -> Iterator[str]:
    """Yield how long the run takes on a machine or cluster, and the longest chain of jobs with what takes long in it."""
    if chain := [*chain_lines(graph, tasks)]:
        devices = f"{number_of(gpus, 'GPU')} and " if project.gpus else ""
        took = simulate(tasks, max(gpus, project.gpus), cores, QUEUE)
        yield f"about {duration(took)} on {devices}{number_of(cores, 'core')}, downloads at {DOWNLOADED_MB_A_SECOND:.0f} MB/s; simulated"
        yield from chain


def chain_lines(graph: Graph, tasks: Mapping[str, Task]) -> Iterator[str]:
    """Yield the longest chain of jobs that are to run, and what takes long in it; nothing where no job is."""
    chain = longest_path(tasks)
    least = sum(tasks[name].seconds for name in chain)
    if not least:
        return
    yield f"critical path, on any number of GPUs: {duration(least)}:"
    named = partial(_named, graph)
    yield from (f"  {named(name)}  {duration(tasks[name].seconds)}" for name in chain if tasks[name].seconds >= SHORTEST * least)


def _named(graph: Graph, name: str) -> str:
    job = graph[name]
    return f"{job.rule} {own_name(job.rule, job.wildcards)}".rstrip()
