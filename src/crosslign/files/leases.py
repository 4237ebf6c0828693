"""One GPU a job: the workflow engine counts GPUs but hands none out, so jobs on one machine lease devices by lock."""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from crosslign.errors import ResourceError

POLL_SECONDS = 1.0
SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
"""Set in the jobs of schedulers."""
MACHINE = Path("/tmp")  # noqa: S108 (a folder of mode 0700 in it)
"""Where the locks lie, whatever TMPDIR says: runs of two TMPDIRs would share devices, and machines of one would wait for each other's."""

log = logging.getLogger(__name__)


def visible_gpus(environment: Mapping[str, str]) -> list[str]:
    """Return the devices that this process may use: those of CUDA_VISIBLE_DEVICES, else all that the driver lists."""
    if "CUDA_VISIBLE_DEVICES" in environment:
        return [device.strip() for device in environment["CUDA_VISIBLE_DEVICES"].split(",") if device.strip() not in ("", "-1")]
    try:
        done = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [str(number) for number, _ in enumerate(done.stdout.splitlines())] if done.returncode == 0 else []


def gpu_note(count: int, environment: Mapping[str, str]) -> str:
    """Return what to say before a run that asks for `count` GPUs a job on a machine that shows fewer; empty where all is well.

    Under a scheduler nothing is said: its jobs run elsewhere.
    """
    if not count or any(name in environment for name in SCHEDULERS):
        return ""
    found = len(visible_gpus(environment))
    if not found:
        return (
            f"the scale asks for {count} GPU a job and this machine shows none: jobs on it are computed on the CPU (see crosslign doctor)"
        )
    return f"the scale asks for {count} GPUs a job and this machine shows {found}: such jobs will be refused" if count > found else ""


def _locks() -> Path:
    place = MACHINE if os.access(MACHINE, os.W_OK) else Path(tempfile.gettempdir())
    folder = place / f"crosslign-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def lease_gpus(count: int, wait_seconds: float = 24 * 3600.0) -> Iterator[list[str]]:
    """Hold `count` devices that no other job of this user on this machine holds, and show this process no others.

    A lock is the kernel's: it goes with its process, however that ends. Devices that a scheduler gave are leased among the jobs that
    share its allocation (the workstation's profile inside an `salloc`); an allocation of the job's own is never contested. A job that
    wants none is shown none. Where there are no GPUs, nothing is leased.

    Args:
        count: devices that the job wants.
        wait_seconds: how long to wait for them.

    Yields:
        the devices, as CUDA_VISIBLE_DEVICES names them.

    Raises:
        ResourceError: the machine has fewer, or they stay taken.
    """
    if not count:
        with _shown([]):
            yield []
        return
    devices = visible_gpus(os.environ)
    if not devices:
        log.warning("%d GPU asked for, and this machine shows none: the CPU computes", count)
        yield []
        return
    if count > len(devices):
        raise ResourceError(f"the job wants {count} GPUs", why=f"this machine shows {len(devices)}", do="Lower `gpus` of the scale")
    deadline = time.monotonic() + wait_seconds
    while True:
        with ExitStack() as held:
            taken: list[str] = []
            for device in devices:
                if len(taken) < count and _take(held, device):
                    taken.append(device)
            if len(taken) == count:
                with _shown(taken):
                    yield taken
                return
        if time.monotonic() > deadline:
            raise ResourceError("no GPU became free", why=f"waited {wait_seconds:.0f} s", do="Run with --resources gpu=<number of GPUs>")
        time.sleep(POLL_SECONDS)


def _take(held: ExitStack, device: str) -> bool:
    """Lock a device; tell whether it is ours now."""
    try:
        held.enter_context(FileLock(_locks() / f"{_of_allocation()}{device.replace('/', '_')}.lock", timeout=0))
    except Timeout:
        return False
    return True


def _of_allocation() -> str:
    """Return what sets the devices of this scheduler's job apart: those that it gave are numbered anew in each job."""
    numbers = [os.environ[name] for name in SCHEDULERS if name in os.environ] if "CUDA_VISIBLE_DEVICES" in os.environ else []
    return "-".join([*numbers, ""])


@contextmanager
def _shown(devices: list[str]) -> Iterator[None]:
    """Show this process, and what it starts, these devices alone."""
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    if devices:
        log.info("using GPU %s", ", ".join(devices))
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before
