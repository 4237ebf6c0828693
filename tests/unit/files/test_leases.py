"""Devices are leased one a job, across processes, and come back however a process ends."""

import os
import signal
import subprocess
import sys
import time
from uuid import uuid4

import pytest

from crosslign.errors import ResourceError
from crosslign.files.leases import _locks, lease_gpus, visible_gpus

HOLD = """
import sys, time
from crosslign.files.leases import lease_gpus
with lease_gpus(1) as devices:
    print(devices[0], flush=True)
    time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def two(monkeypatch):
    """Two devices that no other test has; gives their names."""
    devices = [f"GPU-{uuid4()}" for _ in range(2)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(devices))
    for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"):
        monkeypatch.delenv(name, raising=False)
    yield devices
    for device in devices:
        for lock in _locks().glob(f"*{device}.lock"):
            lock.unlink()


def hold(seconds):
    return subprocess.Popen([sys.executable, "-c", HOLD, str(seconds)], stdout=subprocess.PIPE, text=True)


def test_jobs_on_one_machine_never_share_a_device(two):
    jobs = [hold(30), hold(30)]
    try:
        assert {job.stdout.readline().strip() for job in jobs} == set(two)
        with pytest.raises(ResourceError, match="no GPU became free"), lease_gpus(1, wait_seconds=0):
            pass
        jobs[0].send_signal(signal.SIGKILL)
        jobs[0].wait()
        with lease_gpus(1, wait_seconds=20) as devices:
            assert os.environ["CUDA_VISIBLE_DEVICES"] == devices[0]
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(two)
    finally:
        for job in jobs:
            job.kill()
            job.wait()


def test_jobs_of_another_temporary_folder_share_no_device_either(two, monkeypatch, tmp_path):
    job = hold(30)
    try:
        held = job.stdout.readline().strip()
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        with lease_gpus(1, wait_seconds=0) as devices:
            assert {held, *devices} == set(two)
        assert list(tmp_path.iterdir()) == []
    finally:
        job.kill()
        job.wait()


def test_a_job_waits_until_a_device_is_free(two):
    first, second = hold(1), hold(1)
    assert {first.stdout.readline().strip(), second.stdout.readline().strip()} == set(two)
    start = time.monotonic()
    with lease_gpus(2, wait_seconds=60) as devices:
        assert devices == two
    assert time.monotonic() - start < 60
    assert first.wait() == second.wait() == 0


def test_more_than_there_are_is_an_error(two):
    with pytest.raises(ResourceError, match="wants 3 GPUs; this machine shows 2"), lease_gpus(3):
        pass


def test_jobs_that_share_an_allocation_never_share_a_device(two, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    inside = [hold(30), hold(30)]
    try:
        assert {job.stdout.readline().strip() for job in inside} == set(two)
        with pytest.raises(ResourceError, match="no GPU became free"), lease_gpus(1, wait_seconds=0):
            pass
        # Another allocation on this machine numbers its own devices alike.
        monkeypatch.setenv("SLURM_JOB_ID", "18")
        with lease_gpus(2, wait_seconds=0) as devices:
            assert devices == two
        # A scheduler that gave no devices leaves those of the machine to all of its jobs.
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        monkeypatch.setattr("crosslign.files.leases.visible_gpus", lambda _: two[:1])
        with lease_gpus(1, wait_seconds=0):
            monkeypatch.setenv("SLURM_JOB_ID", "19")
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
            with pytest.raises(ResourceError, match="no GPU became free"), lease_gpus(1, wait_seconds=0):
                pass
    finally:
        for job in inside:
            job.kill()
            job.wait()


def test_a_job_that_wants_none_is_shown_none(two):
    with lease_gpus(0) as devices:
        assert devices == visible_gpus(os.environ) == []
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(two)


def test_nothing_is_leased_where_there_is_nothing(two, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with lease_gpus(1) as devices:
        assert devices == []
