"""The entry point `crosslign`: finds the command, runs it, and turns errors into one line."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from ruamel.yaml import YAML

from crosslign.cli import COMMANDS
from crosslign.config.load import load_project
from crosslign.config.project import Project
from crosslign.config.yaml_files import load_yaml
from crosslign.errors import CrosslignError, InputError


def project_arguments(parser: ArgumentParser) -> None:
    """Declare what every command that reads a project takes: its folder, and values that override config.yaml."""
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    parser.add_argument("--configfile", type=Path, help="configuration file (default: config/config.yaml)")
    parser.add_argument(
        "--config", nargs="*", default=[], metavar="KEY=VALUE", help="override keys of the configuration, as Snakemake does"
    )


def read_project(directory: Path, configfile: Path | None, overrides: Sequence[str]) -> Project:
    """Load the project as the workflow does.

    Raises:
        InputError: no configuration there, or a wrong one.
    """
    file = configfile or directory / "config" / "config.yaml"
    if not file.exists():
        raise InputError("no configuration", where=str(file), do="Run this in the project's folder, or give --directory")
    settings = dict(load_yaml(file).content)
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise InputError(f"--config {override!r} has no value", do="Write KEY=VALUE")
        settings[key] = YAML(typ="safe").load(value)
    return load_project(directory, settings)


def parser() -> ArgumentParser:
    """Return the parser with every command."""
    top = ArgumentParser(prog="crosslign", description="Plan, inspect and check runs of the crosslign workflow.")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    for name in COMMANDS.names():
        command = COMMANDS.get(name)()
        sub = commands.add_parser(name, help=command.help, description=command.help)
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (2 wrong input, 3 network, 4 resources; see docs/architecture.md)."""
    args = parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except CrosslignError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return 0
