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
from crosslign.collector import collect_rarely
from crosslign.errors import CrosslignError, PrintableStream


def parser() -> ArgumentParser:
    """Return the parser with every command."""
    top = ArgumentParser(prog="crosslign", description="Plan, inspect and check runs of the crosslign workflow.")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    for name in COMMANDS.names():
        command = COMMANDS.get(name)()
        sub = commands.add_parser(name, help=command.help, description=command.help)
        command.arguments(sub)
        sub.set_defaults(chosen=command.run)  # no argument of a command may be called so
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (2 wrong input, 3 network, 4 resources, 130 Ctrl-C; see docs/architecture.md).

    Names, licences, logs and results come from anywhere: no code in them that a terminal would obey is printed.
    """
    collect_rarely()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # Python has no stream where a shell closed it (`>&-`)
        out, err = (cast(TextIO, PrintableStream(stream or nowhere)) for stream in (sys.stdout, sys.stderr))
        try:
            with redirect_stdout(out), redirect_stderr(err):
                return _run(arguments)
        finally:
            _flush(sys.stdout or nowhere)


def _flush(stream: TextIO) -> None:
    """Write what is left; where its reader has gone (`| head -1`), the interpreter would try again and complain: let it find no pipe."""
    try:
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    args = parser().parse_args(arguments)
    try:
        return int(args.chosen(args))
    except CrosslignError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception:  # the interpreter would print its text as it stands
        traceback.print_exc()
        return 1
