"""Jobs that a Slurm of several nodes would never start, or refuses: told before the first job, and by doctor."""

import pytest

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("resources", "limit"),
    [
        (("score:slurm_partition=short", "score:runtime=60"), "60 minutes, but partition short (MaxTime) allows at most 30"),
        (("score:qos=tiny", "score:runtime=20"), "20 minutes, but QOS tiny (MaxWall) allows at most 10"),
    ],
)
def test_jobs_that_could_never_start_are_refused_before_the_first(nodes, project, resources, limit):
    project.forget_score()
    before = nodes.last()
    done = project.on_slurm("--set-resources", *resources, check=False)
    assert done.returncode != 0
    assert f"score asks for {limit}" in done.stdout
    assert "max_runtime" in done.stdout
    assert nodes.last() == before


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("train_system: {slurm_partition: short, runtime: 60}", "partition short (MaxTime) allows at most 30"),
        ("scoer: {slurm_partition: short}", "score"),
        ("train_system: {slurm_partition: cpu}", "where GPUs have a partition of their own"),
        ("train_system: {slurm_partition: gpu}", ""),
    ],
)
def test_doctor_asks_for_each_rule_of_ones_own_file(nodes, project, own, said):
    project.set_own(f"set-resources:\n  {own}\n")
    (line,) = [
        line for line in project.crosslign("doctor").splitlines() if "slurm/local.yaml" in line and line.startswith(("ok", "bad", "note"))
    ]
    assert line.startswith("bad" if said else "ok"), line
    assert said in line
