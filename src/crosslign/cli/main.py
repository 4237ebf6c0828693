"""The entry point `crosslign`: finds the command, runs it, and turns errors into one line."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from crosslign.cli import COMMANDS
from crosslign.errors import CrosslignError


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
