"""Devices are leased one a job, across processes, and come back however a process ends."""

import os
import signal
import subprocess
import sys
from threading import Timer
from uuid import uuid4

import pytest

from crosslign.errors import ResourceError
from crosslign.jobs.leases import lease_gpus, lock_of, visible_gpus

HOLD = """
from crosslign.jobs.leases import lease_gpus
with lease_gpus(1) as devices:
    print(devices[0], flush=True)
    input()
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
        for lock in lock_of(device).parent.glob(f"crosslign-gpu-*{device}.lock"):
            lock.unlink()


def hold(first=""):
    """Start a process that leases a device until it is killed, after what `first` says."""
    return subprocess.Popen([sys.executable, "-c", first + HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("own", "expected"), [({}, "expandable_segments:True"), ({"PYTORCH_ALLOC_CONF": "backend:native"}, "backend:native")]
)
def test_a_job_on_a_gpu_keeps_its_memory_whole_unless_the_user_says_otherwise(two, monkeypatch, own, expected):
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    with lease_gpus(1, wait_seconds=0):
        assert os.environ["PYTORCH_ALLOC_CONF"] == expected


def test_jobs_on_one_machine_never_share_a_device(two):
    jobs = [hold(), hold()]
    try:
        assert {job.stdout.readline().strip() for job in jobs} == set(two)
        with pytest.raises(ResourceError, match=r"GPU.*--resources gpu="), lease_gpus(1, wait_seconds=0):
            pass
        jobs[0].send_signal(signal.SIGKILL)
        jobs[0].wait()
        with lease_gpus(1, wait_seconds=0) as devices:
            assert os.environ["CUDA_VISIBLE_DEVICES"] == devices[0]
            assert lock_of(devices[0]).exists()
        assert not lock_of(devices[0]).exists()
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(two)
    finally:
        for job in jobs:
            job.kill()
            job.wait()


def test_jobs_of_another_temporary_folder_share_no_device_either(two, monkeypatch, tmp_path):
    job = hold()
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


ANOTHER_USER = """
import os
import crosslign.jobs.leases
os.umask(0o077)
os.setgid(65534)
os.setuid(65534)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_another_users_jobs_share_no_device_either(two):
    theirs = hold(ANOTHER_USER)
    try:
        assert theirs.stdout.readline().strip() == two[0]  # its file is theirs
        with lease_gpus(1, wait_seconds=0) as devices:
            assert devices == two[1:]
        theirs.kill()
        theirs.wait()
        ours = hold()
        assert ours.stdout.readline().strip() == two[0]
        second = hold()
        assert second.stdout.readline().strip() == two[1]  # its file is ours
        second.kill()
        second.wait()
        theirs = hold(ANOTHER_USER)
        assert theirs.stdout.readline().strip() == two[1]
        ours.kill()
        ours.wait()
    finally:
        theirs.kill()
        theirs.wait()


def test_a_link_in_the_place_of_a_lock_is_not_followed(two, tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("kept")
    lock_of(two[0]).symlink_to(own)
    with pytest.raises(ResourceError, match=rf"GPU {two[0]} .*leased"), lease_gpus(1):
        pass
    assert own.read_text() == "kept"
    assert own.stat().st_mode & 0o777 != 0o666


@pytest.mark.parametrize(
    ("shown", "devices"),
    [
        ("0,1", ["0", "1"]),
        ("1,1,0", ["1", "0"]),
        ("0,-1,1", ["0"]),
        ("NoDevFiles", []),
        (" GPU-8a, MIG-GPU-5d/1/0", ["GPU-8a", "MIG-GPU-5d/1/0"]),
    ],
)
def test_devices_are_those_that_cuda_would_show(shown, devices):
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": shown}) == devices


WHOLE = "GPU {}: NVIDIA A100-SXM4-40GB (UUID: GPU-{})\n"
SLICE = "  MIG 1g.5gb      Device  {}: (UUID: MIG-{})\n"


@pytest.mark.parametrize(
    ("listed", "devices"),
    [
        ("", []),
        (WHOLE.format(0, "aa") + WHOLE.format(1, "bb"), ["0", "1"]),
        (WHOLE.format(0, "aa") + SLICE.format(0, "x") + SLICE.format(1, "y"), ["MIG-x", "MIG-y"]),
        (WHOLE.format(0, "aa") + WHOLE.format(1, "bb") + SLICE.format(0, "x") + WHOLE.format(2, "cc"), ["GPU-aa", "MIG-x", "GPU-cc"]),
    ],
)
def test_the_slices_of_a_gpu_are_the_devices(listed, devices, command):
    command("nvidia-smi", f"printf '%s' '{listed}'")
    assert visible_gpus({}) == devices


def test_a_job_waits_until_a_device_is_free(two):
    jobs = [hold(), hold()]
    assert {job.stdout.readline().strip() for job in jobs} == set(two)
    ends = [Timer(seconds, job.kill) for seconds, job in enumerate(jobs, start=1)]
    for end in ends:
        end.start()
    with lease_gpus(2, wait_seconds=120) as devices:
        assert devices == two
        assert all(job.wait() for job in jobs)


def test_more_than_there_are_is_an_error(two):
    with pytest.raises(ResourceError, match=r" 3 GPUs; .* 2\. .*`gpus`"), lease_gpus(3):
        pass


def test_slices_of_a_gpu_are_no_devices_of_one_job(monkeypatch):
    whole = [f"GPU-{uuid4()}" for _ in range(2)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"MIG-{uuid4()},{whole[0]},MIG-{uuid4()},{whole[1]}")
    with lease_gpus(2, wait_seconds=0) as devices:
        assert devices == whole
    with pytest.raises(ResourceError, match=r" 3 GPUs; .* 2, .* 2 slices"), lease_gpus(3):
        pass


def test_jobs_that_share_an_allocation_never_share_a_device(two, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    inside = [hold(), hold()]
    try:
        assert {job.stdout.readline().strip() for job in inside} == set(two)
        with pytest.raises(ResourceError, match=r"GPU.*--resources gpu="), lease_gpus(1, wait_seconds=0):
            pass
        # Another allocation on this machine numbers its own devices alike.
        monkeypatch.setenv("SLURM_JOB_ID", "18")
        with lease_gpus(2, wait_seconds=0) as devices:
            assert devices == two
        # A scheduler that gave no devices leaves those of the machine to all of its jobs.
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        monkeypatch.setattr("crosslign.jobs.leases.visible_gpus", lambda _: two[:1])
        with lease_gpus(1, wait_seconds=0):
            monkeypatch.setenv("SLURM_JOB_ID", "19")
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
            with pytest.raises(ResourceError, match=r"GPU.*--resources gpu="), lease_gpus(1, wait_seconds=0):
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
