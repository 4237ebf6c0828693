"""One process at a job: a second waits and is refused; a file system without locks stops nobody and leaves nothing that could."""

import errno
import fcntl

import pytest

from crosslign.errors import ResourceError
from crosslign.jobs import alone
from crosslign.jobs.alone import only_one
from crosslign.jobs.frame import execute
from crosslign.jobs.leases import SCHEDULERS


def run(folder, stage):
    log = folder / "logs" / "score" / "a.log"
    execute(stage, inputs=[], outputs=[], params=[("root", str(folder))], threads=1, log=str(log))
    return log.read_text()


@pytest.mark.parametrize("answer", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_job_runs_where_the_file_system_has_no_locks(tmp_path, monkeypatch, quiet_logging, answer):
    def flock(descriptor, operation):
        raise OSError(answer, "no locks here")

    monkeypatch.setattr(fcntl, "flock", flock)
    seen = []
    for _ in range(2):  # what the first left does not hold up the second
        run(tmp_path, seen.append)
    assert len(seen) == 2


def test_a_second_process_at_a_job_is_refused_and_the_next_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(alone, "WAIT_SECONDS", 0.1)
    for name in SCHEDULERS:
        monkeypatch.delenv(name, raising=False)
    log = tmp_path / "logs" / "a.log"
    with only_one(log), pytest.raises(ResourceError, match=rf"{log}: .*fuser "), only_one(log):
        pass
    with only_one(log):
        pass


def test_a_schedulers_job_waits_minutes_and_no_hour(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(alone, "SCHEDULED_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(alone, "WAIT_SECONDS", 3600.0)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with only_one(tmp_path / "a.log"), pytest.raises(ResourceError), only_one(tmp_path / "a.log"):
        asked.append("never")
    assert not asked
