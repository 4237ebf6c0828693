"""`crosslign claims`: what the papers claim, and what the scores that are there say of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.errors import InputError
from crosslign.paths import PUBLISHED


@COMMANDS.register()
class Claims:
    """Reads configuration, printed figures and scores; builds nothing."""

    help = "print the papers' claims: published difference, our difference, verdict"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the project."""
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the page.

        Raises:
            InputError: no paper of the configuration has claims.
        """
        from crosslign.config.claims import claims_recipe
        from crosslign.reporting.claims import as_markdown, ledger

        project = read_project(args)
        recipe = claims_recipe(project)
        if not recipe["claims"]:
            papers = ", ".join(project.settings["papers"])
            raise InputError("no claims", where=f"papers: {papers}", do="Give --configfile config/paper.yaml")
        lines = ledger(recipe["claims"], recipe["tables"], project.paths.results, args.directory / PUBLISHED)
        print(as_markdown(lines, recipe["title"]), end="")
        return 0
