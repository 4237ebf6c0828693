"""`crosslign status`: what the runs of a results folder took."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.config.project import Project
from crosslign.errors import InputError


@COMMANDS.register
class Status:
    """Prints finished jobs, their time and peak memory by rule, from the benchmark files; `plan` estimates from the same files."""

    help = "show what finished jobs took"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the folder."""
        default = Path("results/laptop")
        parser.add_argument("results", type=Path, nargs="?", default=default, help=f"results with their scale (default: {default})")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the costs.

        Raises:
            InputError: nothing has finished there.
        """
        from crosslign.reporting.plan import status_text

        if not (args.results / "benchmarks").is_dir():
            raise InputError(
                "no finished job here", where=str(args.results), do="Give a results folder with its scale, such as results/laptop"
            )
        print(status_text(args.results, self._project(args)))
        return 0

    def _project(self, args: Namespace) -> Project | None:
        """Return the configuration that made these results, where the folder's name and place say which it was."""
        args.config = [*args.config, f"scale={args.results.name}", f"results={args.results.parent}"]
        try:
            return read_project(args)
        except InputError:
            return None
