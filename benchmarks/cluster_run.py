"""The graph of the papers run by Snakemake itself, each job a sleep of its estimate divided by `--divide`, beside the simulation.

A copy of the project keeps its configuration, graph, priorities, inputs and outputs; only the scripts are replaced by sleeps, and no
job has a thread or a benchmark file more than the simulation counts with. Snakemake's own scheduler starts the jobs under the same
limits. The real run also pays for the engine: what it adds to a job is printed, as is what the simulation gives with that added to
each job. The last line is the ratio of the makespan of the plain simulation and that of the real run.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from _common import ROOT, machine, measured, parser, versions
from cluster_simulation import CORES, JOBS, PAPERS, tasks

from crosslign.planning.simulation import longest_path, simulate

COPIED = ("Snakefile", "config", "workflow", "profiles", "envs")
NAP = """
import os as _os
from crosslign.planning.graph import Planned as _Planned
from crosslign.planning.times import job_seconds as _job_seconds


def needs(rule):
    def nap(wildcards):
        seconds = _job_seconds(project, _Planned(rule, dict(wildcards.items()), True, frozenset()), {})
        return f"{seconds / float(_os.environ['DIVIDE']):.4f}s"

    return {"nap": nap}
"""
SNAKEFILE_HOOKS = """

onstart:
    drop_start_limit(workflow.scheduler)
    Path("started").touch()


onsuccess:
    Path("ended").touch()
"""


def asleep(rules: str) -> str:
    """Return the text of a file of rules whose jobs sleep and touch their outputs."""
    rules = re.sub(r"^ +benchmark:\n.*\n", "", rules, flags=re.MULTILINE)
    rules = re.sub(r"^( +)threads: .*$", r"\1threads: 1", rules, flags=re.MULTILINE)
    blocks = re.split(r"(?m)^(?= *(?:use )?rule\b)", rules)
    for number, block in enumerate(blocks):
        make = "mkdir -p" if "directory(" in block else "touch"
        blocks[number] = re.sub(r'script:\n( +)".*"', rf'shell:\n\1"sleep {{resources.nap}}; {make} {{output}}"', block)
    return "".join(blocks)


def sleeping_project(folder: Path) -> Path:
    """Write a copy of the project whose jobs sleep."""
    folder.mkdir()
    for name in COPIED:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)
    for path in (folder / "workflow" / "rules").glob("*.smk"):
        path.write_text(asleep(path.read_text()))
    common = folder / "workflow" / "rules" / "common.smk"
    common.write_text(common.read_text() + NAP)
    snakefile = folder / "Snakefile"
    snakefile.write_text(re.sub(r"(?ms)^onstart:.*", "", snakefile.read_text()) + SNAKEFILE_HOOKS)
    return folder


def real_seconds(papers: list[str], gpus: int, divide: float) -> tuple[float, float]:
    """Return seconds from the first start to the last end of a run of the sleeping copy, and processor seconds of all of it."""
    with tempfile.TemporaryDirectory(prefix="crosslign-asleep-") as made:
        folder = sleeping_project(Path(made) / "project")
        command = [sys.executable, "-m", "snakemake", "--cores", str(CORES), "--resources", f"gpu={gpus}", "--configfile"]
        command += ["config/paper.yaml", "--quiet", "all", "--latency-wait", "5", "--config", f"papers=[{','.join(papers)}]"]
        path = f"{ROOT / 'src'}:{ROOT / 'benchmarks'}"
        cost = measured(command, folder, PYTHONPATH=path, DIVIDE=str(divide), OMP_NUM_THREADS="1")
        return (folder / "ended").stat().st_mtime - (folder / "started").stat().st_mtime, cost.processor


def main() -> None:
    """Run the graph for real, simulate it, and print both."""
    command = parser(__doc__)
    command.add_argument("--gpus", type=int, default=8)
    command.add_argument("--divide", type=float, default=1_000)
    command.add_argument("--papers", nargs="+", default=PAPERS, choices=PAPERS)
    args = command.parse_args()
    print(f"{machine()}; {versions('snakemake')}; {time.strftime('%Y-%m-%d')}")
    made = tasks(args.papers)
    work = sum(task.seconds * task.gpus for task in made.values())
    bound = max(work / args.gpus, sum(made[name].seconds for name in longest_path(made))) / args.divide
    plain = simulate(made, args.gpus, CORES, JOBS) / args.divide
    real, processor = real_seconds(args.papers, args.gpus, args.divide)
    engine = processor / len(made)
    print(f"{len(made)} jobs of {', '.join(args.papers)}, {args.gpus} GPUs, estimates divided by {args.divide:.0f}")
    print(f"bound {bound:.1f} s, simulated {plain:.1f} s, Snakemake {real:.1f} s; {1000 * engine:.0f} ms of processor time a job")
    busy = 100 * work / args.divide / args.gpus
    print(f"devices in use: simulated {busy / plain:.1f} %, Snakemake {busy / real:.1f} %")
    print(f"as hours of the papers: simulated {plain * args.divide / 3600:.1f}, Snakemake {real * args.divide / 3600:.1f}")
    print(f"ratio: {plain / real:.2f}")


if __name__ == "__main__":
    main()
