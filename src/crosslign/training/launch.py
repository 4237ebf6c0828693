"""One training on several GPUs: a process each, with the variables that `torchrun` sets.

Its agent is left out: asked to stop, it kills its processes after 30 seconds, which a checkpoint of a large encoder may need.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crosslign.errors import CrosslignError, InputError, NetworkError, ResourceError, StoppedError
from crosslign.files.temporary import temporary_folder
from crosslign.files.text import read_json, write_json
from crosslign.workers import STOPPING

MODULE = "crosslign.training.rank"
LAUNCHER_VARIABLE = "CROSSLIGN_LAUNCHER"
"""Process that started the ranks; they end with it. Under `torchrun` it is unset."""
POLL_SECONDS = 0.2
KINDS: Mapping[int, type[CrosslignError]] = {kind.exit_code: kind for kind in (InputError, NetworkError, ResourceError, StoppedError)}
KINDS = {**KINDS, **{-number: StoppedError for number in STOPPING}}  # a rank that was told to stop while it was still starting

log = logging.getLogger(__name__)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def _environment(rank: int, ranks: int, port: int) -> dict[str, str]:
    own = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": ranks,
        "LOCAL_WORLD_SIZE": ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        LAUNCHER_VARIABLE: os.getpid(),
    }
    return {**os.environ, **{name: str(value) for name, value in own.items()}}


@contextmanager
def _passing_on(processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[list[int]]:
    """Hand signals to stop on to every rank, which save one state together; give those that came."""
    came: list[int] = []

    def hand_on(number: int, frame: Any) -> None:
        came.append(number)
        for process in processes:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in STOPPING}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """Wait for all ranks and return their exit codes; when one fails the others, which would wait for it for ever, are ended."""
    left = list(processes)
    while left:
        for process in left:
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
        left = [process for process in left if process.poll() is None]
        codes = [process.poll() for process in processes]
        if left and any(code not in (None, 0, StoppedError.exit_code) for code in codes):
            for process in left:
                process.kill()
    return [process.wait() for process in processes]


def train_on(ranks: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Train one run with several processes on this machine.

    Args:
        ranks: processes; rank r takes device r of those that are visible.
        arguments: those of `train_run` by name, paths as text.

    Returns:
        What `train_run` returned on rank 0.

    Raises:
        CrosslignError: the first that a rank raised, as the kind that its exit code names.
    """
    with temporary_folder("crosslign-ranks-") as name:
        write_json(Path(name) / "arguments.json", dict(arguments))
        while (counts := _train_on(ranks, Path(name))) is None:
            pass
        return counts


def _train_on(ranks: int, folder: Path) -> dict[str, Any] | None:
    """Start the ranks and wait for them; None where a batch did not fit into the memory of one, and all are to start with smaller ones."""
    port = _free_port()
    log.info("training on %d devices, one process each", ranks)
    command = [sys.executable, "-m", MODULE, str(folder)]
    processes = [subprocess.Popen(command, env=_environment(rank, ranks, port)) for rank in range(ranks)]
    try:
        with _passing_on(processes) as stopping:
            codes = _wait(processes)
    finally:
        for process in processes:
            process.kill()
    if not any(codes):
        return dict(read_json(folder / "counts.json"))
    errors = [read_json(path) for path in sorted(folder.glob("error-*.json"))]
    again = [error["error"] for error in errors if error["again"]]
    if again and not stopping:
        log.warning("restarting: %s", again[0])
        for path in folder.glob("error-*.json"):
            path.unlink()
        return None
    said = [error["error"] for error in errors]
    failed = next((code for code in codes if code not in (0, StoppedError.exit_code, -signal.SIGKILL)), max(codes))
    raise KINDS.get(failed, CrosslignError)(said[0] if said else f"a rank ended with exit code {failed}", why="see the log")
