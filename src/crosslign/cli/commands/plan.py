"""`crosslign plan`: what a run would do and cost, before anything runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from typing import TYPE_CHECKING

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.errors import InputError

if TYPE_CHECKING:
    from crosslign.planning.cost import Job


def _count(text: str) -> int:
    """Read a number of devices, one or more."""
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


@COMMANDS.register()
class Plan:
    """Asks Snakemake for a dry run, and prints jobs by stage, time, GPU-hours and files."""

    help = "show what a run would do, need and cost"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare targets and the machine."""
        parser.add_argument("targets", nargs="*", help="targets, as in config.yaml (default: those of the configuration)")
        parser.add_argument("--cores", type=_count, default=os.cpu_count() or 1, help="cores to plan for (default: those of this machine)")
        parser.add_argument("--gpus", type=_count, default=1, help="GPUs to plan for (default: 1)")
        parser.add_argument("--files", action="store_true", help="print the files alone, as CSV: sizes, checksums, origins and places")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the plan, or its files.

        Raises:
            InputError: Snakemake refuses the configuration; says why.
        """
        from crosslign.config.data_plan import data_plan
        from crosslign.planning.data import files_csv
        from crosslign.planning.plan import plan_text

        if args.targets:
            args.config = [*args.config, f"targets=[{','.join(args.targets)}]"]
        project = read_project(args)
        needs = data_plan(project, project.settings["targets"])
        if args.files:
            print(files_csv(needs), end="")
            return 0
        # Both at once: what is to be done, and all that there is to the targets, done or not.
        processes = [_dry_run(args), _dry_run(args, "--forceall", "--quiet", "rules")]
        said = [process.communicate() for process in processes]
        # Its own reasons it prints to the one stream or to the other.
        if failed := ["".join(streams) for process, streams in zip(processes, said, strict=True) if process.returncode]:
            raise InputError("Snakemake cannot plan this", where=str(args.directory), why=complaint(failed[0]))
        (counts, jobs), (every, _) = (planned(stdout + stderr) for stdout, stderr in said)
        cached = {stage: count - counts.get(stage, 0) for stage, count in every.items()}
        print(plan_text(project, counts, cached, jobs, needs, args.cores, args.gpus))
        return 0


def _dry_run(args: Namespace, *options: str) -> subprocess.Popen[str]:
    """Start a dry run of the configuration that the arguments name."""
    # A profile that the shell names ($SNAKEMAKE_PROFILE) brings a configuration of its own, which this plan is not of.
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "all", "--profile", "none", *options]
    command += ["--configfile", str(args.configfile.resolve())] if args.configfile else []
    command += ["--config", *args.config] if args.config else []
    return subprocess.Popen(command, cwd=args.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


MESSAGES = {
    "fetch": r"Fetching (?P<file>.+) of (?P<source>\S+)$",
    "prepare_encoder": r"Preparing the base encoder (?P<encoder>\S+)",
    "build_corpus": r"Reading and filtering the corpus (?P<corpus>\S+)",
    "build_evaluation": r"Making the evaluation set (?P<corpus>\S+)",
    "build_view": r"Making the view (?P<view>\S+)",
    "build_examples": r"Building the training set (?P<examples>\S+)",
    "tokenise": r"Tokenising the training set (?P<examples>\S+) \((?P<key>\S+)\)",
    "train_system": r"Training (?P<run>\S+)",
    "embed": r"Encoding (?P<text_set>\S+) with (?P<run>\S+) \(",
}
"""What the rules whose jobs cost something say of themselves."""


def complaint(said: str) -> str:
    """Return what is wrong, of all that a dry run that failed says: our own line of it, else Snakemake's last ones."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("Using workflow specific profile")]
    own = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return own[-1] if own else " ".join(lines[-3:])


def planned(output: str) -> tuple[dict[str, int], list[Job]]:
    """Return jobs by rule, and rule and wildcards of those that cost something, from the output of a dry run."""
    stats = re.search(r"^Job stats:\n.*?\n-.*?\n(.*?)\n\n", output, flags=re.MULTILINE | re.DOTALL)
    rows = [line.split() for line in stats[1].splitlines()] if stats else []
    from crosslign.config.resources import stage_of

    jobs: Counter[str] = Counter()
    for row in rows:
        if len(row) == 2 and row[0] not in ("total", "all", "all_tables", "all_figures"):
            jobs[stage_of(row[0])] += int(row[1])
    said = dict.fromkeys(re.findall(r"^Job \d+: (.*)$", output, flags=re.MULTILINE))
    return jobs, [(rule, found.groupdict()) for text in said for rule, words in MESSAGES.items() if (found := re.match(words, text))]
