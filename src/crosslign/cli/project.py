"""What every command that reads a project takes: its folder, its configuration, and values that override it."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ruamel.yaml import YAML

from crosslign.config.load import load_project
from crosslign.config.project import Project
from crosslign.config.yaml_files import load_yaml
from crosslign.errors import InputError


def project_arguments(parser: ArgumentParser) -> None:
    """Declare the project's folder, its configuration file, and overrides."""
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    parser.add_argument("--configfile", type=Path, help="configuration file (default: config/config.yaml)")
    parser.add_argument("--config", nargs="*", default=[], metavar="KEY=VALUE", help="override configuration keys, as Snakemake does")


def read_project(args: Namespace) -> Project:
    """Load the project that the arguments name, as the workflow does.

    Raises:
        InputError: no configuration there, or a wrong one.
    """
    file = args.configfile or args.directory / "config" / "config.yaml"
    if not file.exists():
        raise InputError("no configuration", where=str(file), do="Run this in the project's folder, or give --directory")
    settings = dict(load_yaml(file).content)
    for override in args.config:
        key, equals, value = override.partition("=")
        if not equals:
            raise InputError(f"--config {override!r} has no value", do="Write KEY=VALUE")
        settings[key] = YAML(typ="safe").load(value)
    if args.directory.resolve() != Path.cwd():
        settings["results"] = str(args.directory / settings.get("results", "results"))
    return load_project(args.directory, settings)


def options(args: Namespace) -> list[str]:
    """Return what Snakemake must be given, in the project's folder, to see the same project."""
    file = [] if args.configfile is None else ["--configfile", str(args.configfile)]
    return [*file, *(["--config", *map(shlex.quote, args.config)] if args.config else [])]
