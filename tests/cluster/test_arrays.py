"""A rule whose jobs go to Slurm as one array, switched on in slurm/local.yaml as docs/cluster.md says."""

import pytest

pytestmark = pytest.mark.long
RUNS = ("MB-base-s42", "MB-nomom-s42")


def test_the_jobs_of_a_rule_can_go_as_one_array(cluster, first, own_file):
    own_file("slurm-array-jobs: embed\n")
    before = cluster.last()
    kept = {}
    for run in RUNS:
        (vectors,) = (first.results / "embeddings" / run).rglob("bucc2018_sample_zh.npy")
        kept[vectors] = vectors.read_bytes()
        vectors.unlink()
        first.forget_score(run, "bucc_moco")
    first.run()
    jobs = [job for job in cluster.jobs(after=before) if "embed" in job.comment]
    assert {job.state for job in jobs} == {"COMPLETED"}
    assert sorted(job.fields.get("ArrayTaskId") for job in jobs) == ["1", "2"]
    assert len({job.fields["ArrayJobId"] for job in jobs}) == 1
    assert {vectors: vectors.read_bytes() for vectors in kept} == kept
