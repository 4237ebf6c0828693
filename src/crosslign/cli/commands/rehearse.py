"""`crosslign rehearse`: the downloads of a target, tried on this machine against servers that fail as publishers do."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.config.layers import names_of


def _share(text: str) -> float:
    """Read a share from 0 to below 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to below 1")
    return value


@COMMANDS.register()
class Rehearse:
    """Serves small files at the publishers' paths on the loopback, fails at random, and fetches all that a target downloads."""

    help = "test the downloads of a target against local servers that fail as publishers' servers do"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare targets and what goes wrong."""
        parser.add_argument("targets", nargs="*", help="targets as for `plan`, or ids of papers (default: those of the configuration)")
        parser.add_argument("--faults", type=_share, default=0.3, help="share of the requests that fail (default: 0.3)")
        parser.add_argument("--seed", type=int, default=42, help="seed of the failures (default: 42)")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print what went wrong and what came; 1 where a file is not right."""
        from crosslign.corpora.rehearsal import rehearsal_text, rehearse

        papers = [name for name in args.targets if name in names_of(args.directory, "papers")]
        if papers:
            args.config = [f"papers=[{','.join(papers)}]", *args.config]
        project = read_project(args)
        with tempfile.TemporaryDirectory(prefix="crosslign-rehearsal-") as folder:
            done = rehearse(project, args.targets or project.settings["targets"], Path(folder), args.faults, args.seed)
        print(rehearsal_text(done))
        return 1 if done.wrong else 0
