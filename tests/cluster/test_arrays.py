"""Rules whose jobs go to Slurm as arrays, switched on in slurm/local.yaml as docs/cluster-jobs.md says."""

import shutil
from collections import Counter

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
    (array,) = {job.fields["ArrayJobId"] for job in jobs}
    assert {vectors: vectors.read_bytes() for vectors in kept} == kept
    assert logs(first, array) == []


def logs(project, array):
    return sorted((project.folder / ".snakemake" / "slurm_logs").rglob(f"{array}_*.log"))


def test_jobs_of_an_array_rule_that_find_no_room_in_the_queue_come_later(cluster, first, own_file):
    own_file("slurm-array-jobs: score\njobs: 3\n")
    before = cluster.last()
    scores = first.results / "scores" / RUNS[0]
    kept = {path.relative_to(scores) for path in scores.rglob("*.json") if not path.name.endswith("lineage.json")}
    shutil.rmtree(scores)
    shutil.rmtree(first.results / "tables")
    first.run()
    assert {path.relative_to(scores) for path in scores.rglob("*.json") if not path.name.endswith("lineage.json")} == kept
    jobs = cluster.jobs(after=before)
    assert {job.state for job in jobs} == {"COMPLETED"}
    assert len(jobs) == len(kept) > 6  # more are ready than chosen, and again when the first have ended
    arrays = Counter(job.fields["ArrayJobId"] for job in jobs if "ArrayJobId" in job.fields)
    assert max(arrays.values()) > 1
    assert [path for array in arrays for path in logs(first, array)] == []
