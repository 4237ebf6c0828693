"""`crosslign mteb`: scores in the JSON form of MTEB's results."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import lru_cache
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.config.load import project_in
from crosslign.errors import InputError


@COMMANDS.register()
class Mteb:
    """Writes the scores of tasks that MTEB has in its form, one folder a run."""

    help = "write scores in the JSON format of MTEB's results"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the two folders, and the project whose tasks the scores are of."""
        parser.add_argument("results", type=Path, help="a results folder with its scale, such as results/paper")
        parser.add_argument("out", type=Path, help="folder for the files")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Write the files and print their names.

        Raises:
            InputError: no scores there, none of a task that MTEB has, or of a scale that does not read the whole of its data, or a file
                that differs from its lineage.
        """
        from crosslign.provenance.artefact_states import NOT_BUILT, require_whole
        from crosslign.reporting.mteb import FORMS, export

        if not (args.results / "scores").is_dir():
            raise InputError("no scores here", where=str(args.results), do=NOT_BUILT)
        tasks = read_project(args).tasks

        @lru_cache
        def check(profile: str) -> None:
            scale = project_in(args.directory, [*args.config, f"scale={profile}"], args.configfile).scale
            if scale["sources"] != "real" or "evaluation_items" in scale["limits"]:
                why = f"scale {profile} uses synthetic data, or a part of each test"
                raise InputError("these scores are not on MTEB's items", where=str(args.results), why=why)

        averages = {name: list(task.get("averages", {})) for name, task in tasks.items()}
        written = list(export(args.results, args.out, averages, check, lambda score: require_whole(args.results, [score])))
        if not written:
            raise InputError(
                "no score of a task of MTEB", where=str(args.results), why=f"these tasks can be written: {', '.join(sorted(FORMS))}"
            )
        for path in written:
            print(path)
        return 0
