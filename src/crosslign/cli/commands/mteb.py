"""`crosslign mteb`: scores in the JSON form of MTEB's results."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS


@COMMANDS.register
class Mteb:
    """Writes the scores of tasks that MTEB has in its form, one folder a run."""

    help = "write scores in the JSON form of MTEB's results"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the two folders."""
        parser.add_argument("results", type=Path, help="a results folder with its scale, such as results/paper")
        parser.add_argument("out", type=Path, help="folder for the files")

    def run(self, args: Namespace) -> int:
        """Write the files and print their names."""
        from crosslign.config.load import load_project
        from crosslign.errors import InputError
        from crosslign.reporting.mteb import FORMS, export

        tasks = load_project(Path.cwd()).tasks
        written = list(export(args.results, args.out, {name: list(task.get("averages", {})) for name, task in tasks.items()}))
        if not written:
            raise InputError("no score of a task that MTEB has", where=str(args.results), why=f"such tasks: {', '.join(sorted(FORMS))}")
        for path in written:
            print(path)
        return 0
