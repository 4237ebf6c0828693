"""`crosslign verify`: whether results are what their lineage says."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, results_folder
from crosslign.console import number_of, printable


@COMMANDS.register()
class Verify:
    """Hashes every artefact again, derives every cell again, and says what is whole, stale, missing or touched by hand."""

    help = "check results against their lineage"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the folder, and what to do beside looking."""
        parser.add_argument("results", type=Path, nargs="?", help="results with their scale (default: those of the configuration)")
        project_arguments(parser)
        either = parser.add_mutually_exclusive_group()
        either.add_argument(
            "--discard", action="store_true", help="move stale and altered files to <results>/.discarded; the next run rebuilds them"
        )
        either.add_argument(
            "--settle",
            action="store_true",
            help="accept undamaged results as made by the current code, and give them one time stamp (after a clock was set back)",
        )

    def run(self, args: Namespace) -> int:
        """Print the state; 0 when everything is whole, 1 otherwise; of what is taken away 1 where something cannot be read."""
        from crosslign.provenance.discard import discard
        from crosslign.provenance.settle import settle
        from crosslign.provenance.verify import verify

        results = results_folder(args)
        if args.discard:
            gone, closed = discard(results, args.directory)
            stays = [printable(f"{finding.state}, and stays: {finding.path} ({finding.why})") for finding in closed]
            print("\n".join([*([f"discarded: {path}" for path in gone] or ["nothing to discard"]), *stays]))
            return 1 if closed else 0
        if args.settle:
            number, taken = settle(results)
            lines = [f"{count} accepted: {change}" for change, count in taken.items()]
            print("\n".join([f"{number_of(number, 'undamaged artefact')} now have one time stamp", *lines]))
            return 0
        text, whole = verify(results, args.directory)
        print(text)
        return 0 if whole else 1
