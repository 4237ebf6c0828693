"""`snakemake --cores all --profile slurm` builds a table on a real Slurm: jobs, GPUs, memory, time; only what is missing."""

import re

import pytest
from slurm_by_hand import GPUS, most_at_once
from slurm_project import most_here

from crosslign.config.load import load_project
from crosslign.config.resources import job_need

GPU_RULES = ("rule_train_system", "rule_embed")
LOCAL = ("fetch", "write_stand_in", "prepare_encoder", "make_table", "write_report")


def rule_of(job):
    return re.sub(r"_wildcards_.*", "", job.comment)


def test_the_table_is_there_and_its_jobs_ran_on_slurm(first):
    assert (first.results / "tables" / "moco_bert_table5.csv").exists()
    assert {job.state for job in first.first_jobs} == {"COMPLETED"}
    rules = {rule_of(job) for job in first.first_jobs}
    assert {"rule_build_corpus", "rule_build_evaluation", "rule_build_examples", "rule_score", *GPU_RULES} <= rules
    assert not [rule for rule in rules for local in LOCAL if local in rule]
    assert sum(rule_of(job) == "rule_train_system" for job in first.first_jobs) == 2
    assert "such jobs run on the CPU" not in first.said  # of this machine; the nodes are others


def test_never_more_gpu_jobs_than_devices(first):
    jobs = [job for job in first.first_jobs if job.gpus]
    assert {rule_of(job) for job in jobs} == set(GPU_RULES)
    assert {job.gpus for job in jobs} == {1}
    assert len(jobs) > GPUS
    assert most_at_once(jobs) == GPUS


def test_memory_time_and_cpus_are_as_declared(first):
    project = load_project(first.folder, {"scale": "quick", "papers": ["moco_bert"], "targets": ["all"], "gpus": 1})
    for run in ("MB-base-s42", "MB-nomom-s42"):
        (job,) = (job for job in first.first_jobs if job.comment == f"rule_train_system_wildcards_{run}")
        need = job_need(project, "train_system", {"run": run}, 1)
        assert (job.megabytes, job.minutes) == (need.mem_mb, need.runtime)
        assert job.fields["NumCPUs"] == "1"
    encodings = [job for job in first.first_jobs if rule_of(job) == "rule_embed"]
    assert {job.fields["NumCPUs"] for job in encodings} == {"8"}  # whatever the machine has that the command was given on


def test_no_more_jobs_on_the_login_node_than_it_gives(first):
    assert most_here(first.first_log) == 2  # `local-cores` of their slurm/local.yaml


def test_each_job_is_found_from_the_main_log(first):
    for job in first.first_jobs:
        assert f"SLURM jobid {job.id} " in first.said
    assert "GPU-hours" in first.said
    assert "disk" in first.said


@pytest.mark.long
def test_one_table_from_cached_stages_submits_only_what_is_missing(cluster, first):
    before = cluster.last()
    (vectors,) = (first.results / "embeddings" / "MB-nomom-s42").rglob("bucc2018_sample_zh.npy")
    vectors.unlink()
    first.forget_score("MB-nomom-s42", "bucc_moco")
    first.run()
    jobs = cluster.jobs(after=before)
    assert sorted(rule_of(job) for job in jobs) == ["rule_embed", "rule_score"]
    assert jobs[0].comment.endswith("MB-nomom-s42_last_mean_t128_bucc2018_sample_zh")
    assert {job.state for job in jobs} == {"COMPLETED"}
