"""A real Slurm that takes no jobs for a while, one that takes a job and does not say so, and one that soon forgets those that ended."""

import shutil

import pytest
from slurm_project import PATIENCE, wait_for

pytestmark = pytest.mark.long
RUN, TEXT_SET, TASK = "MB-nomom-s42", "bucc2018_sample_zh", "bucc_moco"


def test_a_job_is_submitted_when_slurm_takes_jobs_again(cluster, first):
    (vectors,) = (first.results / "embeddings" / RUN).rglob(f"{TEXT_SET}.npy")
    vectors.unlink()
    first.forget_score(RUN, TASK)
    before = cluster.last()
    with first.started() as process:
        wait_for(lambda: first.jobs("embed"), 300, "the encoding does not begin")
        with first.frozen("embed"):
            cluster.ask("scontrol", "update", "partitionname=main", "state=drain")
        try:
            wait_for(lambda: "Slurm accepts no jobs at present" in process.log.read_text(), 300, "nobody says why the score waits")
        finally:
            cluster.ask("scontrol", "update", "partitionname=main", "state=up")
        assert process.wait(timeout=600 * PATIENCE) == 0, process.log.read_text()[-6000:]
    assert [(job.comment.split("_")[1], job.state) for job in cluster.jobs(after=before)] == [
        ("embed", "COMPLETED"),
        ("score", "COMPLETED"),
    ]
    assert "Trying to restart" not in process.log.read_text()


LOST = """\
#!/bin/sh
case "$*" in *--test-only*) exec REAL "$@";; esac
[ ! -e "$0.lost" ] || exec REAL "$@"
REAL --hold "$@" > "$0.lost"
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1
"""


@pytest.fixture
def lossy(first, tmp_path):
    """An `sbatch` before the real one; what the controller answers to the first job, which waits in the queue, is lost."""
    command = tmp_path / "sbatch"
    command.write_text(LOST.replace("REAL", shutil.which("sbatch")))
    command.chmod(0o755)
    path = first.environment["PATH"]
    first.environment["PATH"] = f"{tmp_path}:{path}"
    yield
    first.environment["PATH"] = path


def test_a_job_whose_submission_was_not_answered_is_in_the_queue_once(cluster, first, lossy):
    first.forget_score(RUN, TASK)
    before = cluster.last()
    _, said = first.run()
    assert [job.state for job in cluster.jobs(after=before)] == ["CANCELLED", "COMPLETED"]
    assert "Slurm accepts no jobs at present (Socket timed out)" in said
    assert "Trying to restart" not in said


def test_without_accounting_a_slurm_that_soon_forgets_jobs_runs_them(cluster, first):
    first.forget_score(RUN, TASK)
    with cluster.changed(age=2):
        first.run()
    assert list((first.results / "scores" / RUN).rglob(f"{TASK}.*"))
