"""The graph of a run's jobs, as a dry run of Snakemake prints it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crosslign.console import duration
from crosslign.errors import InputError

PATIENCE_SECONDS = 10.0


def _snakemake(args: Namespace) -> subprocess.Popen[str]:
    """Let Snakemake find the jobs of the configuration that the arguments name."""
    # A profile that the shell names ($SNAKEMAKE_PROFILE) brings a configuration of its own, which this plan is not of.
    command = [sys.executable, "-m", "snakemake", "--dag", "dot", "--cores", "all", "--profile", "none"]
    command += ["--configfile", str(args.configfile.resolve())] if args.configfile else []
    command += ["--config", *args.config] if args.config else []
    return subprocess.Popen(command, cwd=args.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def told_to_end(act: Callable[[int], object]) -> Iterator[None]:
    """Act on SIGTERM and SIGHUP while the block runs: they come to this process alone, and what it has started would go on without it.

    What is ignored, as under nohup, stays so. Only the main thread of a process can say so; in others this does nothing.
    """
    main = threading.current_thread() is threading.main_thread()
    wanted = [number for number in (signal.SIGTERM, signal.SIGHUP) if main and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda number, _: act(number)) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def jobs_as_dot(args: Namespace) -> str:
    """Return the graph of jobs as Snakemake prints it; say meanwhile that it is looked for.

    Raises:
        InputError: Snakemake refuses the configuration; says why.
    """
    process, start = _snakemake(args), time.monotonic()

    def end(number: int) -> None:
        process.terminate()
        sys.exit(128 + number)

    print("finding the jobs (half a minute for all five papers) ...", end="", file=sys.stderr, flush=True)
    with told_to_end(end):
        while True:
            try:
                out, err = process.communicate(timeout=PATIENCE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                print(f" {duration(time.monotonic() - start)} ...", end="", file=sys.stderr, flush=True)
    print(f" {duration(time.monotonic() - start)}", file=sys.stderr)
    if process.returncode:  # its own reasons it prints to the one stream or to the other
        raise InputError("Snakemake cannot plan this run", where=str(args.directory), why=complaint(out + err))
    return out


def complaint(said: str) -> str:
    """Return what is wrong, of all that a dry run that failed says: our own line of it, else Snakemake's last ones."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("Using workflow specific profile")]
    own = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return own[-1] if own else " ".join(lines[-3:])
