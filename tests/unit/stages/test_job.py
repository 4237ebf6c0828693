"""What a job says of itself: that its input cannot be used, that it has no GPU, or one that torch cannot use."""

import re

import pytest

from crosslign.errors import InputError, ResourceError
from crosslign.stages.job import execute


@pytest.fixture
def job(tmp_path, quiet_logging):
    """Run a stage as a job that asks for a device; returns its log and its exit code."""

    def run(stage, gpus=0):
        log, code = tmp_path / "a.log", 0
        try:
            execute(stage, rule="embed", inputs=[], outputs=[], params=[("root", str(tmp_path))], threads=1, log=str(log), gpus=gpus)
        except SystemExit as error:
            code = error.code
        return log.read_text(encoding="utf-8"), code

    return run


@pytest.mark.parametrize(("error", "level", "code"), [(InputError, "CRITICAL", 2), (ResourceError, "ERROR", 4)])
def test_only_input_that_cannot_be_used_is_critical(job, error, level, code):
    def stage(_):
        raise error("two columns", where="a.tsv:3")

    said, ended = job(stage)
    assert ended == code
    assert re.search(rf"^\S+ \S+ {level} crosslign: a\.tsv:3: two columns$", said, flags=re.MULTILINE)


def test_a_device_that_torch_cannot_use_is_said(job, monkeypatch, tmp_path):
    """As with a CPU build of torch, or a driver that is too old: the job would compute for days where hours are declared."""
    monkeypatch.setattr("crosslign.files.leases.MACHINE", tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert re.search(r"WARNING .*GPU 3 is this job's, and torch \S+ cannot use it", job(lambda _: None, gpus=1)[0])
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert "WARNING" not in job(lambda _: None, gpus=1)[0]


def test_a_job_that_asks_for_a_device_where_there_is_none_says_so(job, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert re.search(r"WARNING .*1 GPU asked for, and this machine shows none", job(lambda _: None, gpus=1)[0])
    assert "WARNING" not in job(lambda _: None)[0]
