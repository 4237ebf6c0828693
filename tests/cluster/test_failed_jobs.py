"""A job that fails of its input on a real Slurm: tried once, and found from the main log to its own log, to Slurm's, and back."""

import json
import re

import pytest

pytestmark = pytest.mark.long
RUN = "MB-nomom-s42"


@pytest.fixture
def unknown_vectors(first):
    """Vectors that no longer say of which checkpoint they are: no score is made of them."""
    (sidecar,) = (first.results / "embeddings" / RUN).rglob("sts_english.npy.lineage.json")
    whole = sidecar.read_text(encoding="utf-8")
    facts = json.loads(whole)
    del facts["counts"]["checkpoint_sha"]
    sidecar.write_text(json.dumps(facts), encoding="utf-8")
    first.forget_score(RUN, "sts12")
    yield
    sidecar.write_text(whole, encoding="utf-8")
    first.run()  # what was forgotten is there again: no test hangs on which ran before it


def test_it_is_tried_once_and_its_logs_lead_to_each_other(cluster, first, unknown_vectors):
    before = cluster.last()
    code, said = first.run(check=False)
    assert code != 0
    (job,) = cluster.jobs(after=before)  # the profile has three retries
    assert job.state == "FAILED"
    _, named = said.split("failed: score ")
    assert RUN in named.splitlines()[0]
    assert f"slurm job {job.id}: FAILED" in named
    assert "  cause: " in named
    assert "may come from different checkpoints" in named
    own, slurm = (first.folder / path for path in re.findall(r"^  log: (.*)$", named, flags=re.MULTILINE))
    number, pattern = re.search(r"Slurm job (\S+) on .*; its log: (.+)$", own.read_text(encoding="utf-8"), flags=re.MULTILINE).groups()
    assert number == job.id
    assert list(first.folder.glob(pattern)) == [slurm]
    assert str(own.relative_to(first.folder)) in slurm.read_text(encoding="utf-8")


def test_what_fails_in_a_group_is_named_with_its_log_and_what_does_not_counts(cluster, first, unknown_vectors):
    first.forget_score(RUN, "bucc_moco")
    before = cluster.last()
    code, said = first.run("--group-components", "scores=16", check=False)
    assert code != 0
    (job,) = cluster.jobs(after=before)
    assert (job.state, job.fields["NumCPUs"]) == ("FAILED", "2")
    (named,) = said.split("failed: ")[1:]
    assert named.startswith("score ")
    assert "task=sts12" in named.splitlines()[0]
    assert f"slurm job {job.id}: FAILED" in named
    assert "may come from different checkpoints" in named
    own = re.search(r"^  log: (.*/sts12\.log)$", named, flags=re.MULTILINE)[1]
    assert "may come from different checkpoints" in (first.folder / own).read_text(encoding="utf-8")
    assert list((first.results / "scores" / RUN).rglob("bucc_moco.json"))
    first.run("--group-components", "scores=16", check=False)
    (again,) = cluster.jobs(after=int(job.id))
    assert "sts12" in again.fields["JobName"]  # alone: the other one is done
