"""`crosslign plan`: what a run would do and cost, before anything runs."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from crosslign.cli import COMMANDS
from crosslign.cli.dry_run import jobs_as_dot
from crosslign.cli.project import project_arguments, read_project


def _count(text: str) -> int:
    """Read a number of devices, one or more."""
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


@COMMANDS.register()
class Plan:
    """Asks Snakemake for the graph of jobs, and prints them by stage, with time, GPU-hours, critical path and files."""

    help = "show what a run would do, need and cost"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare targets and the machine."""
        parser.add_argument("targets", nargs="*", help="targets as in config.yaml (default: those of the configuration)")
        parser.add_argument("--cores", type=_count, default=os.cpu_count() or 1, help="cores to plan for (default: those of this machine)")
        parser.add_argument("--gpus", type=_count, default=1, help="GPUs to plan for (default: 1)")
        parser.add_argument(
            "--files", action="store_true", help="print only the list of files, as CSV: sizes, checksums, origins and places"
        )
        parser.add_argument("--tables", action="store_true", help="print the cost of each table of the targets on its own, as Markdown")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the plan, or its files.

        Raises:
            InputError: Snakemake refuses the configuration; says why.
        """
        from crosslign.config.data_plan import data_plan
        from crosslign.config.targets import target_names
        from crosslign.planning.data import files_csv
        from crosslign.planning.graph import counts, read_graph
        from crosslign.planning.plan import means, plan_text
        from crosslign.planning.tables import costly, tables_text
        from crosslign.planning.times import tasks_of, wall_lines

        if args.targets:
            args.config = [*args.config, f"targets=[{','.join(args.targets)}]"]
        project = read_project(args)
        needs = data_plan(project, project.settings["targets"])
        if args.files:
            print(files_csv(needs), end="")
            return 0
        graph = read_graph(jobs_as_dot(args))
        done, targets = means(project), {"all", *target_names(project)}
        if args.tables:
            print(tables_text(project, graph, done))
            return 0
        wall = wall_lines(project, graph, tasks_of(project, graph, done), args.gpus, args.cores)
        to_run, cached = (counts(graph, targets, to_run) for to_run in (True, False))
        print(plan_text(project, to_run, cached, costly(graph), needs, wall, args.gpus))
        return 0
