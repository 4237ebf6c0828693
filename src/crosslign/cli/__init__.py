"""The command line: `crosslign <command>`, each command a module of `crosslign.cli.commands`.

It reads configuration, results and lineage, and starts Snakemake where something must be built; it is never a second way to build.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Protocol

from crosslign.registry import Registry


class Command(Protocol):
    """One command; what it imports at module level must be light, since `crosslign --help` loads every command."""

    help: str

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's own arguments."""

    def run(self, args: Namespace) -> int:
        """Do the work and return the exit code; a `CrosslignError` ends the program with its own code."""


COMMANDS: Registry[type[Command]] = Registry("command", "crosslign.cli.commands")
