"""`crosslign crate`: a finished table as a Workflow Run RO-Crate."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import options, project_arguments, read_project
from crosslign.console import number_of


@COMMANDS.register()
class Crate:
    """Writes a table, its scores, their lineage and the workflow as one archive that describes itself."""

    help = "pack a finished table with its scores, lineage and workflow (RO-Crate)"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the table and where the crate is written."""
        parser.add_argument("table", help="id of a finished table")
        parser.add_argument("--out", type=Path, help="output: a .zip file or a folder (default: crates/TABLE.crate.zip in the results)")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Write the crate and say where it is."""
        from crosslign.provenance.crate import write_crate

        project = read_project(args)
        out = args.out or project.paths.crate(args.table)
        files = write_crate(project, args.table, out, options(args))
        print(f"{out}: {number_of(files, 'file')}")
        return 0
