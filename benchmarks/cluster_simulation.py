"""The five papers on 1 to 64 GPUs: makespan and use of the devices, by simulation of the real graph with estimated times.

The peer is what no scheduler can beat: the work shared by all devices, or the longest chain of jobs. The last line is the ratio of
that bound and our makespan on 8 GPUs. Times are those that `crosslign plan` counts with: declared hours of trainings (docs/protocols.md),
encodings by size of encoder and text; CPU jobs by size of text.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

from _common import ROOT, measured, parser

from crosslign.config.load import load_project
from crosslign.planning.graph import read_graph
from crosslign.planning.simulation import Task, longest_path, simulate
from crosslign.planning.times import tasks_of

PAPERS = ["msimcse", "moco_bert", "scl", "mpcl", "emma_x", "anchors"]
"""Those of config/paper.yaml."""
CORES, JOBS, START_SECONDS = 64, 200, 30.0


def tasks(papers: list[str] = PAPERS) -> dict[str, Task]:
    """Return the jobs of the papers with their estimated times, as `crosslign plan` counts with them."""
    project = load_project(ROOT, {"scale": "paper", "papers": papers, "targets": ["all"], "gpus": 1})
    command = [sys.executable, "-m", "snakemake", "--dag", "dot", "--cores", "all", "--configfile", "config/paper.yaml"]
    graph = read_graph(measured([*command, "--config", f"papers=[{','.join(papers)}]"]).out)
    return tasks_of(project, graph, {})


def draw(counts: list[int], hours: list[float], bounds: list[float], shares: list[float], path: Path) -> None:
    """Draw makespan and use of the devices."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    left.loglog(counts, hours, "o-", label="simulated")
    left.loglog(counts, bounds, "k:", label="bound")
    left.set(xlabel="GPUs", ylabel="hours", title="Five papers, makespan")
    shown = [hour for hour, less in pairwise([*hours, 0.0]) if hour > 1.25 * less]  # numbers of one height would lie on each other
    left.set_yticks(shown, [f"{hour:.0f}" for hour in shown])
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
    longest, counts = sum(made[name].seconds for name in longest_path(made)), [1, 2, 4, 8, 16, 32, 64]
    took = [simulate(made, count, CORES, JOBS, START_SECONDS) for count in counts]
    held = sum(task.gpus * (task.seconds + START_SECONDS) for task in made.values())
    shares = [held / (count * seconds) for count, seconds in zip(counts, took, strict=True)]
    bounds = [max(work / count, longest) / 3600 for count in counts]
    gpu_jobs = sum(bool(task.gpus) for task in made.values())
    print(f"{len(made)} jobs, {gpu_jobs} of them on GPUs, {work / 3600:.0f} GPU-hours; longest chain {longest / 3600:.1f} h")
    print(f"at most {JOBS} jobs at once, {CORES} cores, {START_SECONDS:.0f} s to start a job")
    for count, seconds, bound, share in zip(counts, took, bounds, shares, strict=True):
        print(f"{count:>3} GPUs  {seconds / 3600:7.1f} h (bound {bound:7.1f} h)  devices in use {100 * share:5.1f} %")
    if args.image:
        draw(counts, [seconds / 3600 for seconds in took], bounds, shares, args.image)
    eight = counts.index(8)
    print(f"ratio: {bounds[eight] / (took[eight] / 3600):.2f}")


if __name__ == "__main__":
    main()
