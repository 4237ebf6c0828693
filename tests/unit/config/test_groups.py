"""Short jobs go to a scheduler together: no group is larger than it may be, asks for more than a node has, or waits for itself."""

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.resources import GroupResources, Resources

from crosslign.config.graph import corpus_references, evaluation_parts, examples_inputs
from crosslign.config.groups import GROUPED, Groups
from crosslign.config.load import load_project
from crosslign.config.loads import large_sets
from crosslign.config.resources import job_need, most, search_threads
from crosslign.paths import CATALOG

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ["msimcse", "moco_bert", "scl", "mpcl", "emma_x"]
SIZES = {"corpora": 8, "evaluations": 8, "examples": 8, "tokenised": 6, "scores": 16, "embeds": 16, "large_embeds": 4, "large_scores": 4}
MEASURED = ("run", "checkpoint", "readout")


@pytest.fixture(scope="module")
def paper():
    return load_project(ROOT, {"scale": "paper", "papers": PAPERS, "targets": ["all"]})


@pytest.fixture(scope="module")
def groups(paper):
    return Groups(paper, SIZES)


def members(groups, name):
    """Return the jobs of each group, by its number."""
    found = defaultdict(list)
    for key, number in groups._numbered(name).items():
        found[number].append(key)
    return found


def test_all_names_have_a_size_in_the_profile():
    text = (ROOT / "slurm" / "config.yaml").read_text()
    assert sorted(SIZES) == sorted(GROUPED)
    for name, size in SIZES.items():
        assert f"  - {name}={size}\n" in text.replace("   ", "\n")


@pytest.mark.parametrize("name", sorted(SIZES))
def test_no_group_has_more_jobs_than_it_may_and_most_have_several(groups, name):
    found = members(groups, name)
    assert max(map(len, found.values())) <= SIZES[name]
    assert len(found) < sum(map(len, found.values()))


def needs_of(project, rule, key, names, attempt):
    return job_need(project, rule, dict(zip(names, key, strict=True)), attempt)


SCORED = ("score", (*MEASURED, "task"))
VECTORS = (*MEASURED, "text_set")
RULES = {
    "corpora": ("build_corpus", ("corpus",)),
    "evaluations": ("build_evaluation", ("corpus",)),
    "examples": ("build_examples", ("examples",)),
    "tokenised": ("tokenise", ("examples", "key")),
    "scores": SCORED,
    "large_scores": SCORED,
    "embeds": ("embed", VECTORS),
    "large_embeds": ("embed_large", VECTORS),
}
"""Rule of each group's jobs, and their wildcards."""


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_group_asks_for_no_more_than_a_job_may_at_its_first_two_tries_and_never_for_more_memory(paper, groups, name):
    rule, names = RULES[name]
    limits = Resources.parse([f"mem_mb={most(paper)[0]}"], allow_expressions=False)  # as the workflow sets them (rules/common.smk)
    for keys in members(groups, name).values():
        for attempt in (1, 2, 4):
            asked = [needs_of(paper, rule, key, names, attempt) for key in keys]
            jobs = [SimpleNamespace(resources={"mem_mb": one.mem_mb, "runtime": one.runtime}, pipe_group=None) for one in asked]
            found = GroupResources.basic_layered([jobs], limits, run_local=False)
            assert found["mem_mb"] <= most(paper)[0]
            assert len(keys) == 1 or attempt > 2 or sum(one.runtime for one in asked) <= most(paper)[1]


def test_vectors_of_large_sets_and_long_searches_are_no_short_jobs(paper, groups):
    large = large_sets(paper)
    assert all(key[3] not in large for keys in members(groups, "embeds").values() for key in keys)
    for name, large in (("scores", False), ("large_scores", True)):
        assert {search_threads(paper, key[3]) > 1 for keys in members(groups, name).values() for key in keys} == {large}


BEHIND = {
    "corpora": corpus_references,
    "evaluations": lambda project, name: [*corpus_references(project, name), *evaluation_parts(project, name)],
    "examples": lambda project, name: examples_inputs(project, name)["others"],
}


@pytest.fixture(scope="module")
def every():
    """All papers of the catalog."""
    papers = [path.stem for path in sorted((CATALOG / "papers").glob("*.yaml"))]
    return load_project(ROOT, {"scale": "paper", "papers": papers, "targets": ["all"]})


@pytest.mark.parametrize("name", sorted(BEHIND))
def test_no_group_waits_for_one_that_waits_for_it(every, name):
    number = {key[0]: group for group, keys in members(Groups(every, SIZES), name).items() for key in keys}
    waits = {(group, number[other]) for job, group in number.items() for other in BEHIND[name](every, job) if other in number}
    assert waits
    assert all(later > earlier for later, earlier in waits)


def test_the_whole_graph_is_less_than_700_submissions(paper, groups):
    runs = [name for kind, name in groups._behind if kind == "run"]
    together = sum(len(members(groups, name)) for name in SIZES)
    assert 300 < len(runs) < 400
    assert together + len(runs) + len(paper.views) < 700


def test_without_a_size_a_job_goes_alone(paper):
    (key,) = members(Groups(paper, SIZES), "examples")[0][:1]
    assert Groups(paper, {}).group("examples", key) is None
    assert Groups(paper, {"examples": 1}).group("examples", key) is None
    assert Groups(paper, SIZES).group("examples", key) == "examples-0"
    assert Groups(paper, SIZES).group("examples", ("unheard_of",)) is None
