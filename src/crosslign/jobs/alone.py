"""One process at a job: what a killed run left behind ends, and whoever starts the job again waits until it has."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import Timeout

from crosslign.errors import ResourceError
from crosslign.files.locks import locked
from crosslign.jobs.leases import SCHEDULERS

ENGINE_VARIABLE = "CROSSLIGN_ENGINE"
"""`host:pid` of the process that started the jobs of this run; the workflow sets it."""
WAIT_SECONDS = 3600.0
SCHEDULED_WAIT_SECONDS = 300.0
"""The same in a scheduler's job, which holds devices meanwhile: two minutes for the state of a training that was told to end, and more."""

log = logging.getLogger(__name__)


def engine_mark() -> str:
    """Return this process as a job reads it in `CROSSLIGN_ENGINE`."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _end_after(descriptor: int) -> None:
    """Wait until the process behind a pidfd has ended, then ask this one to stop: a training saves its state first."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    waiting.poll()
    log.warning("the run that started this job has ended: stopping")
    os.kill(os.getpid(), signal.SIGTERM)


def end_with_engine(environment: Mapping[str, str]) -> bool:
    """Stop this process, by SIGTERM, as soon as the run that started it is gone; tell whether that is watched.

    A killed engine cannot stop its jobs, which would go on writing beside those of the next run. Jobs of a scheduler belong to the
    scheduler, and another machine's processes cannot be seen; without the kernel's pidfd (Linux 5.3) nothing is watched, and the
    lock of `only_one` alone keeps the two apart.
    """
    host, _, number = environment.get(ENGINE_VARIABLE, "").rpartition(":")
    if not number.isdigit() or host != socket.gethostname() or any(name in environment for name in SCHEDULERS):
        return False
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        descriptor = os.pidfd_open(int(number))
    except ProcessLookupError:
        os.kill(os.getpid(), signal.SIGTERM)
        return True
    except OSError:
        return False
    threading.Thread(target=_end_after, args=(descriptor,), daemon=True).start()
    return True


@contextmanager
def only_one(job_log: Path) -> Iterator[None]:
    """Hold the lock of a job, named by its log; the kernel frees it however a process ends.

    A process of an earlier run is waited for: an hour, in a scheduler's job five minutes.

    Args:
        job_log: the job's log file, which no other job has.

    Raises:
        ResourceError: that process does not end.
    """
    job_log.parent.mkdir(parents=True, exist_ok=True)
    path = job_log.with_name(f".{job_log.name}.lock")
    try:
        held = locked(path, 0.2)
    except Timeout:
        log.warning("%s: a process of an earlier run still does this job; waiting until it ends", job_log)
        try:
            held = locked(path, SCHEDULED_WAIT_SECONDS if any(name in os.environ for name in SCHEDULERS) else WAIT_SECONDS)
        except Timeout as error:
            raise ResourceError(
                "another process does this job and does not end",
                where=str(job_log),
                do=f"End that process (fuser {path} names it); if its machine no longer runs but the lock remains, remove this file",
            ) from error
    with held:
        yield
