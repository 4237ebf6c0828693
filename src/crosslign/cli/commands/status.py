"""`crosslign status`: what the runs of a results folder took."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import datetime
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.dry_run import jobs_as_dot
from crosslign.cli.project import project_arguments, read_project, results_folder
from crosslign.config.project import Project
from crosslign.console import number_of
from crosslign.errors import InputError


@COMMANDS.register()
class Status:
    """Prints finished jobs, their time and peak memory by rule, from the benchmark files that `plan` reads, too, and Slurm's queue.

    Where asked for, it finds the jobs that are left, as `plan` does.
    """

    help = "show the time and memory of finished jobs, and the state of jobs on Slurm"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the folder."""
        parser.add_argument("results", type=Path, nargs="?", help="results with their scale (default: those of the configuration)")
        parser.add_argument("--left", action="store_true", help="also print the number of remaining jobs and their longest chain")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the costs.

        Raises:
            InputError: nothing has finished there, or was given to Slurm; or Snakemake refuses the configuration whose jobs are left.
        """
        from crosslign.planning.plan import status_text
        from crosslign.planning.used import used_lines, uses
        from crosslign.provenance.artefact_states import NOT_BUILT
        from crosslign.slurm.queue import RECORD, queue_lines, recorded

        results, runs = results_folder(args), recorded(args.directory / RECORD)
        finished = (results / "benchmarks").is_dir()
        if not finished and not runs:
            raise InputError("no finished jobs here", where=str(results), do=NOT_BUILT)
        project = self._project(args)
        print(status_text(results, project))
        if finished:
            print("\n".join(used_lines(uses(results))))
        if runs:
            print("\n".join(queue_lines(runs, datetime.now())))
        if args.left:
            print("\n".join(self._left(project or read_project(args), args)))
        return 0

    def _left(self, project: Project, args: Namespace) -> list[str]:
        """Return lines on the jobs that have not ended: their number, and the longest chain of them; one that runs counts as a whole."""
        from crosslign.config.targets import target_names
        from crosslign.planning.graph import counts, read_graph
        from crosslign.planning.plan import means
        from crosslign.planning.times import chain_lines, tasks_of

        graph = read_graph(jobs_as_dot(args))
        left = counts(graph, {"all", *target_names(project)}, to_run=True)
        return [f"left: {number_of(sum(left.values()), 'job')}", *chain_lines(graph, tasks_of(project, graph, means(project)))]

    def _project(self, args: Namespace) -> Project | None:
        """Return the configuration that made these results; the name and place of a folder that was given say which it was."""
        if args.results is not None:
            args.config = [*args.config, f"scale={args.results.name}", f"results={args.results.parent}"]
        try:
            return read_project(args)
        except InputError:
            return None
