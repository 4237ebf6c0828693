"""`crosslign coverage`: how many of the papers' printed figures can be run, and why not the others."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.errors import InputError
from crosslign.paths import PUBLISHED


@COMMANDS.register()
class Coverage:
    """Reads the configuration at scales paper and quick; no results."""

    help = "count the printed figures that can be run, and print reasons for the others"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the project."""
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the page docs/papers/coverage.md.

        Raises:
            InputError: no paper of the configuration has printed figures.
        """
        from crosslign.reporting.coverage import coverage, coverage_page

        given = args.config
        at = {}
        for scale in ("paper", "quick"):
            args.config = [*given, f"scale={scale}"]
            at[scale] = read_project(args)
        found = coverage(at["paper"], at["quick"], args.directory / PUBLISHED)
        if not found:
            papers = ", ".join(at["paper"].settings["papers"])
            do = "Give --configfile config/paper.yaml"
            raise InputError("no printed figures", where=f"papers: {papers}", why="no table of these papers has `published`", do=do)
        print(coverage_page(found), end="")
        return 0
