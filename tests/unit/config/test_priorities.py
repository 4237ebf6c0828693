"""Which jobs start first: of the quick start, where a GPU trains, and where a paper names no steps."""

from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.priorities import job_priority

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def first():
    """Return a function that gives the priority of a job of the quick start."""
    laptop = load_project(ROOT, {"scale": "laptop", "papers": ["quickstart"]})
    return lambda rule, **wildcards: job_priority(laptop, rule, wildcards)


def test_the_longest_training_begins_first(first):
    """By their entries: 200 steps of 64 examples, 100 of 32, 60 of 32."""
    parallel, with_nli, code_switched, dropout = (first("train_system", run=f"QS-{name}-s42") for name in ("P", "PN", "CS", "U"))
    assert parallel == with_nli > code_switched > dropout >= 10
    assert first("score") > parallel
    assert first("embed") == 0


def test_what_a_training_waits_for_has_its_priority(first):
    longest = first("train_system", run="QS-PN-s42")
    assert first("tokenise", examples="verses_parallel_nli") == longest
    assert first("build_examples", examples="nli_en") == longest  # by the union, beside a shorter training of its own
    assert first("build_view", view="verses_code_switched") == first("train_system", run="QS-CS-s42")


def test_beside_gpus_that_train_cores_build_sets_when_nothing_else_waits():
    devices = load_project(ROOT, {"scale": "laptop", "papers": ["quickstart"], "gpus": 1})
    assert job_priority(devices, "build_examples", {"examples": "nli_en"}) == 0
    assert job_priority(devices, "tokenise", {"examples": "nli_en"}) > 10


def test_a_training_begins_by_its_declared_hours_and_else_by_what_it_reads():
    papers = load_project(ROOT, {"scale": "paper", "papers": ["msimcse", "emma_x"]})
    hours = {name: entry["gpu_hours"] for name, entry in papers.systems.items() if "gpu_hours" in entry}
    first = {name: job_priority(papers, "train_system", {"run": f"{name}-s42"}) for name in hours}
    assert sorted(hours, key=first.__getitem__) == sorted(hours, key=hours.__getitem__)
    assert 10 <= min(first.values()) < max(first.values()) < 11


def test_a_training_whose_entry_names_neither_hours_nor_steps_counts_as_longest():
    contest = load_project(ROOT, {"scale": "paper", "papers": ["contest", "quickstart"]})
    assert job_priority(contest, "train_system", {"run": "CT-MS-s42"}) == 11 > job_priority(contest, "train_system", {"run": "QS-P-s42"})
