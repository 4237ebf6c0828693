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
    assert "not known to be of one checkpoint" in named
    own, slurm = (first.folder / path for path in re.findall(r"^  log: (.*)$", named, flags=re.MULTILINE))
    number, pattern = re.search(r"Slurm job (\S+) on .*; its log: (.+)$", own.read_text(encoding="utf-8"), flags=re.MULTILINE).groups()
    assert number == job.id
    assert list(first.folder.glob(pattern)) == [slurm]
    assert str(own.relative_to(first.folder)) in slurm.read_text(encoding="utf-8")
