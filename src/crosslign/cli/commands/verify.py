"""`crosslign verify`: whether results are what their lineage says."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, results_folder
from crosslign.config.load import project_in
from crosslign.console import number_of, printable
from crosslign.errors import InputError
from crosslign.provenance.artefact_states import Finding


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

        results, own = results_folder(args), _outside(args)
        if args.discard:
            gone, closed = discard(results, args.directory, own)
            stays = [printable(f"{finding.state}, and stays: {finding.path} ({finding.why})") for finding in closed]
            print("\n".join([*([f"discarded: {path}" for path in gone] or ["nothing to discard"]), *stays]))
            return 1 if closed else 0
        if args.settle:
            number, taken = settle(results, args.directory, own)
            lines = [f"{count} accepted: {change}" for change, count in taken.items()]
            print("\n".join([f"{number_of(number, 'undamaged artefact')} now have one time stamp", *lines]))
            return 0
        text, whole = verify(results, args.directory, own)
        print(text)
        return 0 if whole else 1


def _outside(args: Namespace) -> list[Finding]:
    """Return what files of the user's own say of results; nothing of results that are not those of the project that is named.

    Raises:
        InputError: a wrong configuration, of the results that it names; of a folder that was given only this check is left out.
    """
    from crosslign.provenance.outside import outside

    try:
        project = project_in(args.directory.absolute(), args.config, args.configfile)
        named = args.results is None or os.path.realpath(project.paths.results) == os.path.realpath(args.results)
        return list(outside(project)) if named else []
    except InputError as error:
        if args.results is None:
            raise
        print(f"not compared with files outside of the results: {error}")
        return []
