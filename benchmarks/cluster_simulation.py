"""The five papers on 1 to 64 GPUs: makespan and use of the devices, by simulation of the real graph with estimated times.

The peer is what no scheduler can beat: the work shared by all devices, or the longest chain of jobs. The last line is the ratio of
that bound and our makespan on 8 GPUs. Times are those that `crosslign plan` counts with: declared hours of trainings (PROTOCOLS C),
encodings by size of encoder and text; CPU jobs by size of text.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from _common import ROOT, measured, parser
from _simulation import Task, longest_path, simulate

from crosslign.config.load import load_project
from crosslign.config.loads import EMBED_RULES
from crosslign.config.project import Project
from crosslign.config.resources import load_of
from crosslign.planning.cost import START_HOURS, declared_hours, encoding_hours

PAPERS = ["msimcse", "moco_bert", "scl", "mpcl", "emma_x"]
CORES, JOBS, START_SECONDS = 64, 200, 30.0
PRIORITIES = {"score": 20, "train_system": 10}
"""As the rules have them."""
CPU_SECONDS_A_MB = {"build_corpus": 0.2, "build_evaluation": 0.2, "build_view": 1.0, "build_examples": 0.2, "score": 0.5}


def graph(papers: list[str]) -> tuple[dict[str, tuple[str, dict[str, str]]], dict[str, set[str]]]:
    """Return rule and wildcards of every job of the papers, and the jobs that each waits for."""
    command = [sys.executable, "-m", "snakemake", "--dag", "dot", "--cores", "all", "--configfile", "config/paper.yaml"]
    command += ["--config", f"papers=[{','.join(papers)}]"]
    dot = measured(command).out
    jobs: dict[str, tuple[str, dict[str, str]]] = {}
    after: dict[str, set[str]] = {}
    for number, label in re.findall(r'^\s*(\d+)\[label = "([^"]*)"', dot, flags=re.MULTILINE):
        rule, *wildcards = label.split("\\n")
        jobs[number] = (rule, dict(item.split(": ", 1) for item in wildcards))
        after[number] = set()
    for before, number in re.findall(r"^\s*(\d+) -> (\d+)", dot, flags=re.MULTILINE):
        after[number].add(before)
    return jobs, after


def wildcards_of(number: str, jobs: dict[str, tuple[str, dict[str, str]]], after: dict[str, set[str]]) -> dict[str, str]:
    """Return a job's wildcards; the graph leaves out those that it shares with a job before it."""
    found = dict(jobs[number][1])
    for before in sorted(after[number]):
        found = {**jobs[before][1], **found}
    return found


def seconds_of(project: Project, rule: str, wildcards: dict[str, str]) -> float:
    """Return the estimated seconds of a job."""
    if rule == "train_system":
        return 3600 * (declared_hours(project, wildcards["run"]) or 1.0)
    if rule in EMBED_RULES:
        return 3600 * (encoding_hours(project, wildcards) - START_HOURS)
    known = rule in CPU_SECONDS_A_MB and rule != "score"
    text = min(load_of(project, rule, wildcards).text_mb, 20_000.0) if known else 20.0
    return 10 + text * CPU_SECONDS_A_MB.get(rule, 0.0)


def tasks(papers: list[str] = PAPERS) -> dict[str, Task]:
    """Return the jobs of the papers with their estimated times."""
    project = load_project(ROOT, {"scale": "paper", "papers": papers, "targets": ["all"], "gpus": 1})
    jobs, after = graph(papers)
    made = {}
    for number, (rule, _) in jobs.items():
        seconds = seconds_of(project, rule, wildcards_of(number, jobs, after))
        gpus = int(rule == "train_system" or rule in EMBED_RULES)
        made[number] = Task(seconds, gpus, 1, frozenset(after[number]), PRIORITIES.get(rule, 0))
    return made


def draw(counts: list[int], hours: list[float], bounds: list[float], shares: list[float], path: Path) -> None:
    """Draw makespan and use of the devices."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    left.loglog(counts, hours, "o-", label="simulated")
    left.loglog(counts, bounds, "k:", label="bound")
    left.set(xlabel="GPUs", ylabel="hours", title="Five papers, makespan")
    left.set_yticks(hours, [f"{hour:.0f}" for hour in hours])
    left.legend()
    right.semilogx(counts, [100 * share for share in shares], "o-")
    right.set(xlabel="GPUs", ylabel="% of device time", ylim=(0, 105), title="Use of the GPUs")
    for axis in (left, right):
        axis.set_xticks(counts, [str(count) for count in counts])
        axis.minorticks_off()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Simulate, draw, and print."""
    command = parser(__doc__)
    command.add_argument("--image", type=Path, help="where to draw the plot")
    args = command.parse_args()
    made = tasks()
    work = sum(task.seconds * task.gpus for task in made.values())
    longest, counts = longest_path(made), [1, 2, 4, 8, 16, 32, 64]
    outcomes = [simulate(made, count, CORES, JOBS, START_SECONDS) for count in counts]
    bounds = [max(work / count, longest) / 3600 for count in counts]
    gpu_jobs = sum(bool(task.gpus) for task in made.values())
    print(f"{len(made)} jobs, {gpu_jobs} of them on GPUs, {work / 3600:.0f} GPU-hours; longest chain {longest / 3600:.1f} h")
    print(f"at most {JOBS} jobs at once, {CORES} cores, {START_SECONDS:.0f} s to start a job")
    for count, outcome, bound in zip(counts, outcomes, bounds, strict=True):
        print(f"{count:>3} GPUs  {outcome.seconds / 3600:7.1f} h (bound {bound:7.1f} h)  devices in use {100 * outcome.utilisation:5.1f} %")
    if args.image:
        draw(counts, [o.seconds / 3600 for o in outcomes], bounds, [o.utilisation for o in outcomes], args.image)
    eight = counts.index(8)
    print(f"ratio: {bounds[eight] / (outcomes[eight].seconds / 3600):.2f}")


if __name__ == "__main__":
    main()
