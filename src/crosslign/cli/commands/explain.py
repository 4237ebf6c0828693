"""`crosslign explain`: where one cell of a table comes from."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from crosslign.cli import COMMANDS
from crosslign.cli.project import options, project_arguments, read_project


@COMMANDS.register()
class Explain:
    """Prints the chain behind a cell, on one screen: record, embeddings, checkpoint, training sets, corpora, downloads."""

    help = "show the origin of one table cell"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare table, row and column."""
        parser.add_argument("table", help="id of the table")
        parser.add_argument("row", help="the row: its name in the CSV (-> for →), label, system, or 'group: label'")
        parser.add_argument("column", help="the column: its name in the CSV, label, or 'group: label'")
        parser.add_argument("--full", action="store_true", help="also print recipe, hashes, counts, versions and command of every artefact")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the chain."""
        from crosslign.provenance.explain import explain

        print(explain(read_project(args), args.table, args.row, args.column, options(args), full=args.full))
        return 0
