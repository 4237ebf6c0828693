"""One GPU a job: the workflow engine counts GPUs but hands none out, so jobs on one machine lease devices by lock."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from filelock import FileLock, Timeout

from crosslign.console import number_of
from crosslign.errors import ResourceError

POLL_SECONDS = 1.0
SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
"""Set in the jobs of schedulers."""
MACHINE = Path("/tmp")  # noqa: S108 (the lock follows no links, and writes nothing into its file)
"""Where the locks lie, whatever TMPDIR says: runs of two TMPDIRs would share devices, and machines of one would wait for each other's."""
FOR_ALL = 0o666
"""Mode of a lock's file: another user's job must open it, to find that the device is taken."""
ALLOCATOR, GROWING = "PYTORCH_ALLOC_CONF", "expandable_segments:True"
"""What keeps batches of ever other lengths from leaving a GPU's memory in pieces; torch reads it with its first allocation there."""
NO_MORE = ("", "-1", "NoDevFiles")
"""What stands in CUDA_VISIBLE_DEVICES instead of a device: CUDA shows nothing from there on. The last is an old Slurm's word for none."""

log = logging.getLogger(__name__)


def visible_gpus(environment: Mapping[str, str]) -> list[str]:
    """Return the devices that this process may use: those of CUDA_VISIBLE_DEVICES, else all that the driver lists.

    A GPU that is cut into slices (MIG) is not a device: its slices are, and have no numbers of their own.
    """
    if "CUDA_VISIBLE_DEVICES" in environment:
        devices = (device.strip() for device in environment["CUDA_VISIBLE_DEVICES"].split(","))
        return list(dict.fromkeys(takewhile(lambda device: device not in NO_MORE, devices)))
    try:
        done = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    listed = re.findall(r"^(GPU|\s+MIG) .*\(UUID: (.+)\)", done.stdout if done.returncode == 0 else "", flags=re.MULTILINE)
    kinds = [kind.strip() for kind, _ in listed]
    if "MIG" not in kinds:
        return [str(number) for number in range(len(listed))]
    cut = {number for number, kind in enumerate(kinds[1:]) if kind == "MIG"}
    return [name for number, (_, name) in enumerate(listed) if kinds[number] == "MIG" or number not in cut]


def gpu_note(count: int, environment: Mapping[str, str]) -> str:
    """Return what to say before a run that asks for `count` GPUs a job on a machine that shows fewer; empty where all is well.

    Under a scheduler nothing is said: its jobs run elsewhere.
    """
    if not count or any(name in environment for name in SCHEDULERS):
        return ""
    found = len(visible_gpus(environment))
    if not found:
        return f"the scale asks for {count} GPU per job, but this machine has none: such jobs run on the CPU (see crosslign doctor)"
    return f"the scale asks for {count} GPUs per job, but this machine has {found}: such jobs will fail" if count > found else ""


def lock_of(device: str) -> Path:
    """Return the file whose lock a job holds while a device is its own; the same for all users of this machine."""
    place = MACHINE if os.access(MACHINE, os.W_OK) else Path(tempfile.gettempdir())
    return place / f"crosslign-gpu-{_of_allocation()}{device.replace('/', '_')}.lock"


@contextmanager
def lease_gpus(count: int, wait_seconds: float = 24 * 3600.0) -> Iterator[list[str]]:
    """Hold `count` devices that no other job on this machine holds, whoever started it, and show this process no others.

    A lock is the kernel's: it goes with its process, however that ends. Devices that a scheduler gave are leased among the jobs that
    share its allocation (the workstation's profile inside an `salloc`); an allocation of the job's own is never contested. A job that
    wants none is shown none. Where there are no GPUs, nothing is leased.

    Args:
        count: devices that the job wants.
        wait_seconds: how long to wait for them.

    Yields:
        the devices, as CUDA_VISIBLE_DEVICES names them.

    Raises:
        ResourceError: the machine has fewer, they stay taken, or a lock's file cannot be used.
    """
    if not count:
        with _shown([]):
            yield []
        return
    devices = visible_gpus(os.environ)
    if not devices:
        log.warning("%d GPU requested, but this machine has none: computing on the CPU", count)
        yield []
        return
    slices = [device for device in devices if device.startswith("MIG")] if count > 1 else []
    devices = [device for device in devices if device not in slices]  # CUDA shows a process one slice of a GPU, and NCCL joins none
    if count > len(devices):
        more = f", and {number_of(len(slices), 'slice')} of a GPU (MIG), which cannot work together" if slices else ""
        raise ResourceError(f"the job needs {count} GPUs", why=f"this machine has {len(devices)}{more}", do="Lower `gpus` of the scale")
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
    path = lock_of(device)
    try:
        held.enter_context(FileLock(path, timeout=0, mode=FOR_ALL))
    except Timeout:
        return False
    except OSError as error:  # a link, or a file that its owner keeps to himself
        raise ResourceError(f"GPU {device} cannot be leased", where=str(path), why=str(error), do="Remove this file") from error
    held.callback(_tidy, path)  # before the lock goes: a process that opened the file finds it gone, and creates another
    return True


def _tidy(path: Path) -> None:
    with suppress(OSError):  # another user's
        path.unlink()


def _of_allocation() -> str:
    """Return what sets the devices of this scheduler's job apart: a scheduler numbers the devices of each job from 0."""
    numbers = [os.environ[name] for name in SCHEDULERS if name in os.environ] if "CUDA_VISIBLE_DEVICES" in os.environ else []
    return "-".join([*numbers, ""])


@contextmanager
def _shown(devices: list[str]) -> Iterator[None]:
    """Show this process, and what it starts, these devices alone."""
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    if devices:
        log.info("using GPU %s", ", ".join(devices))
        if "PYTORCH_CUDA_ALLOC_CONF" not in os.environ:  # its older name
            os.environ.setdefault(ALLOCATOR, GROWING)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before
