"""`crosslign verify`: whether results are what their lineage says."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS


@COMMANDS.register
class Verify:
    """Hashes every artefact again, derives every cell again, and says what is whole, stale, missing or touched by hand."""

    help = "check results against their lineage"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the folder."""
        parser.add_argument(
            "results", type=Path, nargs="?", default=Path("results/laptop"), help="results with their scale (default: results/laptop)"
        )

        parser.add_argument(
            "--discard", action="store_true", help="move what is stale or touched to <results>/.discarded, so that the next run makes it"
        )
        parser.add_argument(
            "--settle",
            action="store_true",
            help="give what is whole one time stamp: after a clock was set back, or a copy that lost its times",
        )

    def run(self, args: Namespace) -> int:
        """Print the state; 0 when everything is whole, 1 otherwise."""
        from crosslign.reporting.verify import discard, settle, verify

        if args.discard:
            gone = discard(args.results)
            print("\n".join([f"discarded: {path}" for path in gone] or ["nothing to discard"]))
            return 0
        if args.settle:
            print(f"{settle(args.results)} whole artefacts have one time stamp")
            return 0
        text, whole = verify(args.results)
        print(text)
        return 0 if whole else 1
