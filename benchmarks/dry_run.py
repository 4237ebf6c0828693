"""The whole graph of the five papers, planned: seconds until Snakemake has said what it would do.

The peer is Snakemake itself on a bare graph of the same number of jobs by rule, without configuration, checks, fingerprints or
messages, alternating with ours. The last line is its processor time over ours; the aim is that ours stays under 30 s.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FROM = 3
"""Inputs of a bare job, from the jobs of the rule before it."""


def timed(command: list[str], folder: Path) -> tuple[float, float, str]:
    """Run a command; return seconds on the wall, seconds of the processor, and what it said."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout + done.stderr


def counts(said: str) -> dict[str, int]:
    """Return jobs by rule, from a dry run."""
    stats = re.search(r"^Job stats:\n.*?\n-.*?\n(.*?)\n\n", said, flags=re.MULTILINE | re.DOTALL)
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args()
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "all"]
    ours_by_turn, peer_by_turn = [], []
    with tempfile.TemporaryDirectory() as name:
        for _ in range(args.repeats):
            *ours, said = timed([*command, "--configfile", "config/paper.yaml"], ROOT)
            jobs = counts(said)
            bare(jobs, Path(name))
            *peer, said = timed(command, Path(name))
            if counts(said) != jobs:
                sys.exit(f"the bare graph has other jobs: {counts(said)}, {jobs}")
            ours_by_turn.append(ours)
            peer_by_turn.append(peer)
    (wall, processor), (peer_wall, peer_processor) = min(ours_by_turn, key=lambda t: t[1]), min(peer_by_turn, key=lambda t: t[1])
    print(f"{sum(jobs.values())} jobs, {jobs['train_system']} trainings")
    print(f"ours {wall:.1f} s ({processor:.1f} s of the processor), bare graph {peer_wall:.1f} s ({peer_processor:.1f} s)")
    print(f"ratio: {peer_processor / processor:.2f}")


if __name__ == "__main__":
    main()
