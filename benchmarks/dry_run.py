"""The whole graph of the five papers, planned: seconds until Snakemake has said what it would do.

The peer is Snakemake itself on a bare graph of the same number of jobs by rule, without configuration, checks, fingerprints or
messages, alternating with ours. The last line is its processor time over ours; the aim is that ours stays under 30 s.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from _common import Cost, machine, measured, parser, versions

FROM = 3
"""Inputs of a bare job, from the jobs of the rule before it."""


def counts(run: Cost) -> dict[str, int]:
    """Return jobs by rule, from a dry run."""
    stats = re.search(r"^Job stats:\n.*?\n-.*?\n(.*?)\n\n", run.out + run.err, flags=re.MULTILINE | re.DOTALL)
    rows = [line.split() for line in stats[1].splitlines()] if stats else []
    return {row[0]: int(row[1]) for row in rows if row[0] != "total"}


def bare(jobs: dict[str, int], folder: Path) -> None:
    """Write a Snakefile of as many jobs by rule; each takes a few files of the rule before."""
    rules = [(name, count) for name, count in jobs.items() if name != "all"]
    every = ", ".join(f'*[f"{name}/{{i}}" for i in range({count})]' for name, count in rules)
    text = [f"rule all:\n    input: [{every}]\n"]
    before: tuple[str, int] | None = None
    for name, count in rules:
        source = f'lambda w: [f"{before[0]}/{{(int(w.i) + k) % {before[1]}}}" for k in range({FROM})]' if before else "[]"
        text.append(f"rule {name}:\n    input: {source}\n    output: '{name}/{{i}}'\n    shell: 'touch {{output}}'\n")
        before = (name, count)
    (folder / "Snakefile").write_text("\n".join(text), encoding="utf-8")


def main() -> None:
    """Time both in turn, and print."""
    given = parser(__doc__)
    given.add_argument("--repeats", type=int, default=2)
    args = given.parse_args()
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "all"]
    ours_by_turn: list[Cost] = []
    peer_by_turn: list[Cost] = []
    with tempfile.TemporaryDirectory() as name:
        for _ in range(args.repeats):
            ours_by_turn.append(measured([*command, "--configfile", "config/paper.yaml"]))
            jobs = counts(ours_by_turn[-1])
            bare(jobs, Path(name))
            peer_by_turn.append(measured(command, Path(name)))
            if counts(peer_by_turn[-1]) != jobs:
                sys.exit(f"the bare graph has other jobs: {counts(peer_by_turn[-1])}, {jobs}")
    ours, peer = (min(turns, key=lambda cost: cost.processor) for turns in (ours_by_turn, peer_by_turn))
    print(f"{machine()}; {versions('snakemake')}; {args.repeats} turns each, equal numbers of jobs by rule")
    print(f"{sum(jobs.values())} jobs, {jobs['train_system']} trainings")
    print(f"ours {ours.wall:.1f} s ({ours.processor:.1f} s of the processor), bare graph {peer.wall:.1f} s ({peer.processor:.1f} s)")
    print(f"ratio: {peer.processor / ours.processor:.2f}")


if __name__ == "__main__":
    main()
