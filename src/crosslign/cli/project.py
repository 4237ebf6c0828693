"""What every command that reads a project takes: its folder, its configuration, and values that override it."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.config.load import project_at, project_in
from crosslign.config.project import Project


def project_arguments(parser: ArgumentParser) -> None:
    """Declare the project's folder, its configuration file, and overrides."""
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    parser.add_argument("--configfile", type=Path, help="configuration file that overrides config/config.yaml, as for Snakemake")
    parser.add_argument("--config", nargs="*", default=[], metavar="KEY=VALUE", help="override configuration keys, as for Snakemake")


def read_project(args: Namespace, needed: bool = True) -> Project:
    """Load the project that the arguments name.

    Args:
        args: what `project_arguments` declares.
        needed: whether there must be one; else a folder without a configuration stands for the library's catalog alone.

    Raises:
        InputError: as `project_at`.
    """
    return (project_at if needed else project_in)(args.directory, args.config, args.configfile)


def results_folder(args: Namespace) -> Path:
    """Return the results folder, with its scale, that a command was given, or else the one of the configuration.

    Raises:
        InputError: none was given, and there is no configuration, or a wrong one.
    """
    return args.results if args.results is not None else read_project(args).paths.results


def options(args: Namespace) -> list[str]:
    """Return what Snakemake must be given, in the project's folder, to see the same project."""
    file = [] if args.configfile is None else ["--configfile", str(args.configfile)]
    return [*file, *(["--config", *map(shlex.quote, args.config)] if args.config else [])]
