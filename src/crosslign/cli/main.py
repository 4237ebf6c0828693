"""The entry point `crosslign`: finds the command, runs it, and turns errors into one line."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import TextIO, cast

from crosslign.cli import COMMANDS
from crosslign.cli.streams import PrintableStream
from crosslign.collector import collect_rarely
from crosslign.files.atomic import in_words
from crosslign.version import __version__

EXIT_CODES = (
    "exit codes: 0 done; 1 verify found a missing or damaged result, or doctor a problem; 2 wrong input; 3 network; "
    "4 disk, memory or device; 130 Ctrl-C; mine ENTRY returns Snakemake's code"
)


def parser() -> ArgumentParser:
    """Return the parser with every command."""
    top = ArgumentParser(prog="crosslign", description="Plan, inspect and check runs of the crosslign workflow.", epilog=EXIT_CODES)
    top.add_argument("--version", action="version", version=f"crosslign {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    for name in COMMANDS.names():
        command = COMMANDS.get(name)()
        sub = commands.add_parser(name, help=command.help, description=command.help)
        command.arguments(sub)
        sub.set_defaults(chosen=command.run)  # no argument of a command may be called so
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (2 wrong input, 3 network, 4 resources, 130 Ctrl-C; see docs/internals.md).

    Names, licences, logs and results come from anywhere: no code in them that a terminal would obey is printed.
    """
    collect_rarely()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # Python has no stream where a shell closed it (`>&-`)
        out, err = PrintableStream(sys.stdout or nowhere, needed=True), PrintableStream(sys.stderr or nowhere, needed=False)
        with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
            try:
                return _run(arguments)
            except BrokenPipeError:  # of `| head -1`
                return 0
            except KeyboardInterrupt:
                return 128 + signal.SIGINT
            except Exception as error:
                if told := in_words(error):
                    print(f"error: {told}", file=sys.stderr)
                    return told.exit_code
                traceback.print_exc()  # the interpreter would print its text as it stands
                return 1


def _run(arguments: Sequence[str] | None) -> int:
    try:
        args = parser().parse_args(arguments)
        return int(args.chosen(args))
    finally:
        sys.stdout.flush()  # here, where it can still be an error of the command
