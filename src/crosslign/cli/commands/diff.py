"""`crosslign diff`: which cells of two results folders moved, and why."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS


@COMMANDS.register()
class Diff:
    """Prints which cells of the tables moved, by how much, whether significantly, and which input differs first."""

    help = "show which cells differ between two results folders, and why"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the two folders."""
        parser.add_argument("before", type=Path, help="a results folder with its scale, such as results/laptop")
        parser.add_argument("after", type=Path, help="another results folder")

    def run(self, args: Namespace) -> int:
        """Print the comparison."""
        from crosslign.provenance.compare import compare

        print(compare(args.before, args.after))
        return 0
