"""A job's log says where Slurm's log of it lies, in each of the places that the executor has."""

import pytest

from crosslign.jobs.frame import SLURM_LOG, slurm_job

ALONE = {"SLURM_JOB_ID": "812"}
IN_ARRAY = {"SLURM_JOB_ID": "815", "SLURM_ARRAY_JOB_ID": "812", "SLURM_ARRAY_TASK_ID": "3"}


@pytest.mark.parametrize(
    ("place", "environment"),
    [
        ("rule_embed/MB-base-s42_last_mean_t128_sts12/812.log", ALONE),
        ("rule_measure_overlap/812.log", ALONE),
        ("group_scores_score/812.log", ALONE),
        ("rule_embed/812_3.log", IN_ARRAY),
    ],
)
def test_the_pattern_finds_the_log_and_no_other(tmp_path, place, environment):
    log = tmp_path / ".snakemake" / "slurm_logs" / place
    for path in (log, log.with_name("8120.log"), log.with_name("812_30.log"), log.parent / "x" / "12.log"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert list(tmp_path.glob(SLURM_LOG.format(number=slurm_job(environment)))) == [log]


def test_outside_of_slurm_there_is_none():
    assert slurm_job({}) == ""
