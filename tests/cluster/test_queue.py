"""A real Slurm that takes no jobs for a while, and one that soon forgets those that ended: no job is lost, and no try."""

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
        wait_for(lambda: first.processes("embed.py"), 300, "the encoding does not begin")
        with first.frozen("embed.py"):
            cluster.ask("scontrol", "update", "partitionname=main", "state=drain")
        try:
            wait_for(lambda: "Slurm takes no jobs just now" in process.log.read_text(), 300, "nobody says why the score waits")
        finally:
            cluster.ask("scontrol", "update", "partitionname=main", "state=up")
        assert process.wait(timeout=600 * PATIENCE) == 0, process.log.read_text()[-6000:]
    assert [(job.comment.split("_")[1], job.state) for job in cluster.jobs(after=before)] == [
        ("embed", "COMPLETED"),
        ("score", "COMPLETED"),
    ]
    assert "Trying to restart" not in process.log.read_text()


def test_without_accounting_a_slurm_that_soon_forgets_jobs_runs_them(cluster, first):
    first.forget_score(RUN, TASK)
    with cluster.forgetting(2):
        first.run()
    assert list((first.results / "scores" / RUN).rglob(f"{TASK}.*"))
