"""`crosslign mine NAME`: build the pairs of one entry of `mine:` and say where they are."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.config.mining import mine_recipe, require_there
from crosslign.config.settings import own_file
from crosslign.files.lineage import lineage_path
from crosslign.files.records import read_json
from crosslign.paths import MINED_FORMATS


def _run(command: Sequence[str], folder: Path) -> int:
    """Run Snakemake to its end, which comes after its jobs', however this process is asked to stop; return its exit code.

    Ctrl-C reaches both from the terminal; other signals are passed on. A killed Snakemake would leave its lock behind.
    """
    with subprocess.Popen(command, cwd=folder) as process:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        try:
            return process.wait()
        finally:
            signal.signal(signal.SIGINT, before[0])
            signal.signal(signal.SIGTERM, before[1])


@COMMANDS.register()
class Mine:
    """Checks the entry, starts Snakemake for its two files, and prints what was found."""

    help = "mine sentence pairs from two files of your own (an entry of `mine:` in config.yaml)"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the entry, and what Snakemake is given."""
        project_arguments(parser)
        parser.add_argument("name", help="id of the entry under mine: in config.yaml")
        parser.add_argument("--cores", default="all", help="cores for the whole run (default: all)")
        parser.add_argument("--profile", help="Snakemake profile, for a cluster")
        parser.add_argument("--dry-run", action="store_true", help="only show what would run")

    def run(self, args: Namespace) -> int:
        """Start Snakemake; return its exit code."""
        project = read_project(args)
        recipe = mine_recipe(project, args.name)
        require_there(project, args.name)
        if recipe["limit"]:
            print(f"the scale {project.settings['scale']} reads the first {recipe['limit']:,} lines of each file alone", file=sys.stderr)
        outputs = [project.paths.mined(args.name, form) for form in MINED_FORMATS]
        # A profile for a cluster brings a configuration of its own, which a file that is named here takes the place of.
        file = args.configfile or own_file(args.directory, args.directory)
        command = [sys.executable, "-m", "snakemake", args.name, "--cores", args.cores, "--configfile", str(file.resolve())]
        command += ["--config", *args.config] if args.config else []
        command += ["--profile", args.profile] if args.profile else []
        command += ["--dry-run"] if args.dry_run else []
        print(f"+ {shlex.join(command[2:])}", file=sys.stderr, flush=True)
        code = _run(command, args.directory)
        if not code and not args.dry_run:
            counts = read_json(lineage_path(outputs[0]))["counts"]
            print(f"{counts['above_threshold']} of {counts['pairs']} pairs above the threshold ({counts['threshold']}); best first:")
            if recipe["limit"]:
                print(f"  of the first {recipe['limit']:,} lines of each file alone: the scale is {project.settings['scale']}")
            if counts["recall_at_k"] is not None:
                print(f"  the search was approximate: recall@{recipe['k']} {counts['recall_at_k']:.4f} on a sample")
            for output in outputs:
                print(f"  {output}")
        return code
