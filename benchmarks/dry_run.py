"""The whole graph of the five papers, planned: seconds until Snakemake has said what it would do.

The peer is Snakemake itself on a bare graph of the same number of jobs by rule, without configuration, checks, fingerprints or
messages, alternating with ours. A third graph of as many jobs declares as much as ours does: five inputs a job, a second output, log,
benchmark, group, priority, resources, parameters and a message, by functions that return constants. What it takes longer than the bare
one is Snakemake's price of what our rules declare; what ours takes longer still is our own. The last line is the bare graph's processor
time over ours.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from _common import Cost, machine, measured, parser, versions

BARE = """\
    output: '{name}/{{i}}'
"""
DECLARED = """\
    output: '{name}/{{i}}', '{name}/{{i}}.lineage.json'
    log: 'logs/{name}/{{i}}'
    benchmark: 'benchmarks/{name}/{{i}}'
    priority: lambda w: 1
    group: lambda w: None
    threads: lambda w: 1
    resources: mem_mb=lambda w, attempt: 100, runtime=lambda w, attempt: 10, disk_mb=lambda w, attempt: 100
    params: recipe=lambda w: {{}}, version=lambda w: '1', root=lambda w: 'results'
    message: '{name} {{wildcards.i}}'
"""
PEERS = {"bare graph": (3, BARE), "graph that declares as much": (5, DECLARED)}
"""Inputs of a job, from the jobs of the rule before it (ours has 5.8), and what else its rule says."""


def counts(run: Cost) -> dict[str, int]:
    """Return jobs by rule, from a dry run."""
    stats = re.search(r"^Job stats:\n.*?\n-.*?\n(.*?)\n\n", run.out + run.err, flags=re.MULTILINE | re.DOTALL)
    rows = [line.split() for line in stats[1].splitlines()] if stats else []
    return {row[0]: int(row[1]) for row in rows if row[0] != "total"}


def write_peer(jobs: dict[str, int], inputs: int, rule: str, folder: Path) -> None:
    """Write a Snakefile of as many jobs by rule; each takes a few files of the rule before."""
    rules = [(name, count) for name, count in jobs.items() if name != "all"]
    every = ", ".join(f'*[f"{name}/{{i}}" for i in range({count})]' for name, count in rules)
    text = [f"rule all:\n    input: [{every}]\n"]
    before: tuple[str, int] | None = None
    for name, count in rules:
        source = f'lambda w: [f"{before[0]}/{{(int(w.i) + k) % {before[1]}}}" for k in range({inputs})]' if before else "[]"
        text.append(f"rule {name}:\n    input: {source}\n{rule.format(name=name)}    shell: 'touch {{output}}'\n")
        before = (name, count)
    (folder / "Snakefile").write_text("\n".join(text), encoding="utf-8")


def main() -> None:
    """Time all in turn, and print."""
    given = parser(__doc__)
    given.add_argument("--repeats", type=int, default=2)
    args = given.parse_args()
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "all"]
    turns: dict[str, list[Cost]] = {"ours": [], **{peer: [] for peer in PEERS}}
    for _ in range(args.repeats):
        turns["ours"].append(measured([*command, "--configfile", "config/paper.yaml"]))
        jobs = counts(turns["ours"][-1])
        for peer, (inputs, rule) in PEERS.items():
            with tempfile.TemporaryDirectory() as folder:
                write_peer(jobs, inputs, rule, Path(folder))
                turns[peer].append(measured(command, Path(folder)))
            if counts(turns[peer][-1]) != jobs:
                sys.exit(f"the {peer} has other jobs: {counts(turns[peer][-1])}, {jobs}")
    least = {name: min(costs, key=lambda cost: cost.processor) for name, costs in turns.items()}
    print(f"{machine()}; {versions('snakemake')}; {args.repeats} turns each, equal numbers of jobs by rule")
    print(f"{sum(jobs.values())} jobs, {jobs['train_system']} trainings")
    print(", ".join(f"{name} {cost.wall:.1f} s ({cost.processor:.1f} s of the processor)" for name, cost in least.items()))
    print(f"ratio: {least['bare graph'].processor / least['ours'].processor:.2f}")


if __name__ == "__main__":
    main()
