"""Kill a run at random moments, again and again, and end in the tables of a run that was never disturbed.

`python tests/faults/soak.py --kills 25 --seed 1 --project mini|quick`: SIGKILL to a random process of the run's tree at a random moment,
then the same command again, until the number of kills is reached; after the last one the run is left alone. Exit code 0 when the tables
are equal, byte for byte, to those of an undisturbed run, and nothing half-written is left.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mini_project import Mini, tree
from project_copy import copy_project


class Quick(Mini):
    """The whole project at scale quick, in place of the small one."""

    def __init__(self, folder: Path) -> None:
        self.folder = copy_project(folder)
        self.results = folder / "results" / "quick"

    def command(self, *arguments: str, cores: str = "2", config: tuple[str, ...] = ()) -> list[str]:
        """Return the command that builds everything at scale quick."""
        return super().command(*arguments, cores=cores, config=("scale=quick", *config))


PROJECTS = {"mini": Mini, "quick": Quick}


def kind_of(pid: int, engine: int) -> str:
    """Say what a process is: the engine, one of its helpers, or the script of a job, by the log that this has open."""
    if pid == engine:
        return "engine"
    try:
        opened = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return "gone"
    rule = next((file.split("/logs/")[1].split("/")[0] for file in opened if "/logs/" in file), "")
    return f"job {rule}" if rule else "helper"


def disturb(project: Mini, draw: random.Random, longest: float) -> str | None:
    """Start the run and kill one process of it at a random moment; return what was killed, None when the run ended first."""
    run = project.start()
    time.sleep(draw.uniform(0.5, longest))
    if run.poll() is not None:
        return None
    victim = draw.choice(sorted(tree(run.pid)))
    what = kind_of(victim, run.pid)
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        what = "gone"
    if victim == run.pid:
        run.wait()
        return what
    try:
        run.wait(timeout=longest)
    except subprocess.TimeoutExpired:  # it goes on with other jobs: leave it no more time, as a machine that goes down would
        run.send_signal(signal.SIGKILL)
        run.wait()
        what += ", then engine"
    return what


def unlocked(project: Mini) -> None:
    """Do what the message of a locked folder says, and nothing where there is no lock."""
    if any((project.folder / ".snakemake" / "locks").glob("*")):
        assert project.run("--unlock", check=False).returncode == 0


def different(project: Mini, whole: Mini) -> list[str]:
    """Return the tables and artefacts that are not the same in two runs; the report, which prints what jobs took, is never."""
    pairs = ((project.tables(), whole.tables()), (project.artefacts(), whole.artefacts()))
    names = {name for ours, theirs in pairs for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
    return sorted(name for name in names if Path(name).name != "report.html")


def soak(kind: str, kills: int, seed: int, longest: float, folder: Path) -> bool:
    """Run undisturbed, then disturbed; say what happened; tell whether both ended alike."""
    draw, began, log = random.Random(seed), time.monotonic(), Counter[str]()
    whole = PROJECTS[kind](folder / "whole")
    whole.run()
    print(f"undisturbed: {time.monotonic() - began:.0f} s, {len(whole.tables())} files of tables", flush=True)
    began, project = time.monotonic(), PROJECTS[kind](folder / "killed")
    while sum(log.values()) < kills:
        what = disturb(project, draw, longest)
        if what is None:  # it finished: make the end again
            shutil.rmtree(project.results, ignore_errors=True)
        elif what != "gone":
            log[what] += 1
            print(f"kill {sum(log.values())} of {kills}: {what}", flush=True)
        unlocked(project)
    project.finish()
    left, differing = project.leftovers(), different(project, whole)
    digest = hashlib.sha256(json.dumps(project.tables(), sort_keys=True).encode()).hexdigest()[:16]
    print(f"{kills} kills, seed {seed}, {time.monotonic() - began:.0f} s: {dict(sorted(log.items()))}")
    print(f"tables {digest}: {f'DIFFERENT: {differing}' if differing else 'byte-equal'}; left behind: {left or 'nothing'}")
    return not differing and not left


def main() -> int:
    """Read the arguments and soak in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=20.0, help="seconds after the start within which a process is killed")
    parser.add_argument("--project", choices=sorted(PROJECTS), default="mini")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crosslign-soak-") as folder:
        return 0 if soak(args.project, args.kills, args.seed, args.longest, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
