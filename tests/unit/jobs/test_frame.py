"""What a job says of itself: that its input cannot be used or was changed, that it has no GPU, or one that torch cannot use."""

import logging
import re
import signal
import subprocess
import sys

import pytest

from crosslign.errors import InputError, ResourceError
from crosslign.files.lineage import Lineage
from crosslign.jobs.failures import Failure, explain
from crosslign.jobs.frame import execute
from crosslign.progress import ONLY_IN_FILE

JOB = """
import sys
from pathlib import Path
from crosslign.jobs.frame import execute
root = Path(sys.argv[1])
def stage(job):
    with job.publish("corpus") as (out, counts):
        {work}
execute(
    stage, inputs=[("rows", str(root / "in.txt"))], outputs=[("rows", str(root / "out.txt"))],
    params=[("root", str(root))], threads=1, log=str(root / "job.log"),
)
"""
WRITES = "out['rows'].parent.mkdir(); out['rows'].write_text('x'); "
WORK = {
    "gone before it is read": ("job.inputs['rows'].unlink(); job.inputs['rows'].read_text()", "disappeared"),
    "gone after it was read": (f"{WRITES}job.inputs['rows'].unlink()", "disappeared"),
    "changed after it was read": (f"{WRITES}job.inputs['rows'].write_text('other')", "changed"),
}


@pytest.fixture
def job(tmp_path, quiet_logging):
    """Run a stage as a job that asks for a device; returns its log and its exit code."""

    def run(stage, gpus=0):
        log, code = tmp_path / "a.log", 0
        try:
            execute(stage, inputs=[], outputs=[], params=[("root", str(tmp_path))], resources=[("gpu", gpus)], threads=1, log=str(log))
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


def test_what_is_for_the_file_alone_is_not_on_the_screen(job, capfd):
    def stage(_):
        logging.getLogger("stage").info("for both")
        logging.getLogger("stage").info("for the file", extra=ONLY_IN_FILE)

    said, _ = job(stage)
    shown = capfd.readouterr().err
    assert "for both" in said
    assert "for the file" in said
    assert "for both" in shown
    assert "for the file" not in shown


def test_a_device_that_torch_cannot_use_is_said(job, monkeypatch, tmp_path):
    """As with a CPU build of torch, or a driver that is too old: the job would compute for days where hours are declared."""
    monkeypatch.setattr("crosslign.jobs.leases.MACHINE", tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert re.search(r"WARNING .*this job has GPU 3, but torch \S+ cannot use it", job(lambda _: None, gpus=1)[0])
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert "WARNING" not in job(lambda _: None, gpus=1)[0]


def test_a_job_that_asks_for_a_device_where_there_is_none_says_so(job, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert re.search(r"WARNING .*1 GPU requested, but this machine has none", job(lambda _: None, gpus=1)[0])
    assert "WARNING" not in job(lambda _: None)[0]


KILL = "import os, signal, time; os.kill({pid}, signal.SIGTERM); time.sleep(100)"


def told_to_end(tmp_path, work):
    (tmp_path / "in.txt").write_text("rows")
    command = [sys.executable, "-c", JOB.format(work=work), str(tmp_path)]
    code = subprocess.run(command, capture_output=True, check=False, timeout=120).returncode
    failure = Failure("build", {}, (tmp_path / "job.log",), "SLURM-job '7' failed, SLURM status is: 'FAILED'")
    return code, [line for line in explain(failure) if "SIGTERM" in line and "cause" in line]


def test_a_job_whose_time_is_up_says_what_ended_it(tmp_path):
    """The scheduler's signal before the end: what it says of the job afterwards is FAILED, of which nobody learns anything."""
    code, (cause,) = told_to_end(tmp_path, KILL.format(pid="os.getpid()"))
    assert code == -signal.SIGTERM
    assert "time limit was reached, or it was cancelled" in cause
    assert not (tmp_path / "out.txt").exists()


def test_what_a_job_has_forked_ends_in_silence(tmp_path):
    work = f"import os; child = os.fork(); child and os.waitpid(child, 0)\n        if not child: {KILL.format(pid='os.getpid()')}"
    code, said = told_to_end(tmp_path, f"{work}\n        {WRITES}")
    assert (code, said) == (0, [])


@pytest.mark.parametrize("name", WORK)
def test_an_input_that_another_process_takes_or_changes_fails_the_job_in_one_line(tmp_path, name):
    work, said = WORK[name]
    (tmp_path / "in.txt").write_text("rows")
    command = [sys.executable, "-c", JOB.format(work=work), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2, done.stderr
    assert f"in.txt: an input {said} while the job ran" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name not in ("in.txt", ".job.log.lock")) == ["job.log"]
    (tmp_path / "in.txt").write_text("rows")
    again = [*command[:2], JOB.format(work=WRITES), str(tmp_path)]
    assert subprocess.run(again, capture_output=True, check=False, timeout=120).returncode == 0
    assert (tmp_path / "out.txt").read_text() == "x"


def test_an_input_that_was_damaged_is_refused_before_any_work(tmp_path):
    (tmp_path / "in.txt").write_text("rows")
    Lineage("fetch", {}, [], tmp_path).write(tmp_path / "in.txt", "download")
    (tmp_path / "in.txt").write_text("rovs")
    command = [sys.executable, "-c", JOB.format(work=f"{WRITES}(root / 'worked').touch()"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2, done.stderr
    assert "in.txt: the file differs from its lineage" in done.stderr
    assert not (tmp_path / "worked").exists()
    assert not (tmp_path / "out.txt").exists()
