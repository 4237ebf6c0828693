"""`crosslign list`: the entries of the catalog and the implementations that YAML can name, each with a line about it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.config.layers import names_of
from crosslign.config.project import Project
from crosslign.config.reference import summaries
from crosslign.config.signatures import PACKAGES
from crosslign.errors import InputError
from crosslign.registry import nearest

ENTRIES = ("encoders", "corpora", "tasks", "systems", "tables", "figures")
FILES = ("papers", "scales")
"""Kinds of which each entry is a file."""
KINDS = (*ENTRIES, *FILES, *PACKAGES)
WORDS = ("title", "label", "citation", "licence", "kind", "scorer")
"""Keys of an entry that say what it is; the first that it has is printed."""


def _about(entry: Mapping[str, Any]) -> str:
    return next((str(entry[key]) for key in WORDS if key in entry), "")


def listed(project: Project, kind: str) -> Iterator[tuple[str, str]]:
    """Yield name and description of everything of a kind, sorted.

    Raises:
        InputError: there is no such kind; names the nearest.
    """
    if kind in PACKAGES:
        yield from summaries(kind)
    elif kind in FILES:
        yield from ((name, "") for name in names_of(project.root, kind))
    elif kind in ENTRIES:
        yield from ((name, _about(entry)) for name, entry in sorted(getattr(project, kind).items()))
    else:
        raise InputError(f"unknown kind {kind!r}", where="crosslign list", why=nearest(kind, list(KINDS)))


@COMMANDS.register()
class List:
    """Prints the names that a configuration, a recipe or a command may hold."""

    help = "list encoders, tasks, objectives and all other names"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the kind, and the project whose own entries count, too."""
        parser.add_argument("kind", nargs="?", help=f"one of {', '.join(KINDS)} (default: the number of each)")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print a line for each name.

        Raises:
            InputError: there is no such kind.
        """
        project = read_project(args, needed=False)
        if args.kind is None:
            found = [(kind, str(sum(1 for _ in listed(project, kind)))) for kind in KINDS]
        else:
            found = list(listed(project, args.kind))
        width = max((len(name) for name, _ in found), default=0)
        for name, text in found:
            print(f"{name:<{width}}  {text}".rstrip())
        return 0
