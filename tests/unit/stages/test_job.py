"""The frame of a job: what goes wrong in it is said in one line, by its name."""

import subprocess
import sys

import pytest

JOB = """
import sys
from pathlib import Path
from crosslign.stages.job import execute
root = Path(sys.argv[1])
def stage(job):
    with job.publish("corpus") as (out, counts):
        {work}
execute(
    stage, rule="build", inputs=[("rows", str(root / "in.txt"))], outputs=[("rows", str(root / "out.txt"))],
    params=[("root", str(root))], threads=1, log=str(root / "job.log"),
)
"""
WRITES = "out['rows'].parent.mkdir(); out['rows'].write_text('x'); "
WORK = {
    "gone before it is read": ("job.inputs['rows'].unlink(); job.inputs['rows'].read_text()", "went away"),
    "gone after it was read": (f"{WRITES}job.inputs['rows'].unlink()", "went away"),
    "changed after it was read": (f"{WRITES}job.inputs['rows'].write_text('other')", "changed"),
}


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
