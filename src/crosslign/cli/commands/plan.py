"""`crosslign plan`: what a run would do and cost, before anything runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.durations import duration
from crosslign.errors import InputError

PATIENCE_SECONDS = 10.0


def _count(text: str) -> int:
    """Read a number of devices, one or more."""
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


@COMMANDS.register()
class Plan:
    """Asks Snakemake for the graph of jobs, and prints them by stage, with time, GPU-hours, critical path and files."""

    help = "show what a run would do, need and cost"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare targets and the machine."""
        parser.add_argument("targets", nargs="*", help="targets, as in config.yaml (default: those of the configuration)")
        parser.add_argument("--cores", type=_count, default=os.cpu_count() or 1, help="cores to plan for (default: those of this machine)")
        parser.add_argument("--gpus", type=_count, default=1, help="GPUs to plan for (default: 1)")
        parser.add_argument("--files", action="store_true", help="print the files alone, as CSV: sizes, checksums, origins and places")
        parser.add_argument("--tables", action="store_true", help="print what each table of the targets costs by itself, as Markdown")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the plan, or its files.

        Raises:
            InputError: Snakemake refuses the configuration; says why.
        """
        from crosslign.config.data_plan import data_plan
        from crosslign.config.targets import target_names
        from crosslign.planning.data import files_csv
        from crosslign.planning.graph import counts, read_graph
        from crosslign.planning.plan import means, plan_text
        from crosslign.planning.tables import costly, tables_text
        from crosslign.planning.times import tasks_of, wall_lines

        if args.targets:
            args.config = [*args.config, f"targets=[{','.join(args.targets)}]"]
        project = read_project(args)
        needs = data_plan(project, project.settings["targets"])
        if args.files:
            print(files_csv(needs), end="")
            return 0
        graph = read_graph(_dag(args))
        done, targets = means(project), {"all", *target_names(project)}
        if args.tables:
            print(tables_text(project, graph, done))
            return 0
        wall = wall_lines(project, graph, tasks_of(project, graph, done), args.gpus, args.cores)
        to_run, cached = (counts(graph, targets, to_run) for to_run in (True, False))
        print(plan_text(project, to_run, cached, costly(graph), needs, wall, args.gpus))
        return 0


def _snakemake(args: Namespace) -> subprocess.Popen[str]:
    """Let Snakemake find the jobs of the configuration that the arguments name."""
    # A profile that the shell names ($SNAKEMAKE_PROFILE) brings a configuration of its own, which this plan is not of.
    command = [sys.executable, "-m", "snakemake", "--dag", "dot", "--cores", "all", "--profile", "none"]
    command += ["--configfile", str(args.configfile.resolve())] if args.configfile else []
    command += ["--config", *args.config] if args.config else []
    return subprocess.Popen(command, cwd=args.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _dag(args: Namespace) -> str:
    """Return the graph of jobs as Snakemake prints it; say meanwhile that it is looked for.

    Raises:
        InputError: Snakemake refuses the configuration; says why.
    """
    process, start = _snakemake(args), time.monotonic()
    print("finding the jobs (half a minute for all five papers) ...", end="", file=sys.stderr, flush=True)
    while True:
        try:
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
            break
        except subprocess.TimeoutExpired:
            print(f" {duration(time.monotonic() - start)} ...", end="", file=sys.stderr, flush=True)
    print(f" {duration(time.monotonic() - start)}", file=sys.stderr)
    if process.returncode:  # its own reasons it prints to the one stream or to the other
        raise InputError("Snakemake cannot plan this", where=str(args.directory), why=complaint(out + err))
    return out


def complaint(said: str) -> str:
    """Return what is wrong, of all that a dry run that failed says: our own line of it, else Snakemake's last ones."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("Using workflow specific profile")]
    own = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return own[-1] if own else " ".join(lines[-3:])
