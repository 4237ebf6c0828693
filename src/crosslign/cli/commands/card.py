"""`crosslign card`: the model card of a trained system, with every score that is known by now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project, results_folder


@COMMANDS.register()
class Card:
    """Prints the card that lies in a checkpoint's folder, its scores added: they are computed after the folder is sealed."""

    help = "print the model card of a trained run, with its scores"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare run, checkpoint and folder."""
        parser.add_argument("run", help="id of the run, such as QS-P-s42, or of a system")
        parser.add_argument("--checkpoint", default="last", help="name of the checkpoint (default: last)")
        parser.add_argument("--results", type=Path, help="results with their scale (default: those of the configuration)")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the cards of the checkpoint's encoders.

        Raises:
            InputError: no such run or checkpoint.
        """
        from crosslign.cli.trained import trained

        found = trained(results_folder(args), args.run, args.checkpoint, read_project(args, needed=False).encoders)
        for member in found.members:
            print(found.card(member))
        return 0
