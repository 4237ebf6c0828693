"""Short jobs go to a scheduler together: no group is larger than it may be, asks for more than a node has, or waits for itself."""

from collections import defaultdict
from pathlib import Path

import pytest

from crosslign.config.graph import corpus_references, evaluation_parts, examples_inputs
from crosslign.config.groups import GROUPED, Groups
from crosslign.config.load import load_project
from crosslign.config.loads import large_sets
from crosslign.config.resources import job_need, most, search_threads

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ["msimcse", "moco_bert", "scl", "mpcl", "emma_x"]
SIZES = {"corpora": 8, "evaluations": 8, "examples": 8, "embeds": 12, "large_embeds": 4, "scores": 16}
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


def needs(project, rule, keys, names):
    return [job_need(project, rule, dict(zip(names, key, strict=True)), 1) for key in keys]


@pytest.mark.parametrize(
    ("name", "rule", "names"),
    [("scores", "score", (*MEASURED, "task")), ("corpora", "build_corpus", ("corpus",)), ("examples", "build_examples", ("examples",))],
)
def test_jobs_side_by_side_ask_together_for_no_more_memory_than_two_tries_may(paper, groups, name, rule, names):
    for keys in members(groups, name).values():
        asked = needs(paper, rule, keys, names)
        assert len(keys) == 1 or 2 * sum(need.mem_mb for need in asked) <= most(paper)[0]


@pytest.mark.parametrize(("name", "rule"), [("embeds", "embed"), ("large_embeds", "embed_large")])
def test_jobs_one_after_another_on_a_gpu_ask_together_for_no_more_time_than_two_tries_may(paper, groups, name, rule):
    for keys in members(groups, name).values():
        asked = needs(paper, rule, keys, (*MEASURED, "text_set"))
        assert len(keys) == 1 or 2 * sum(need.runtime for need in asked) <= most(paper)[1]


def test_vectors_of_large_sets_and_long_searches_are_no_short_jobs(paper, groups):
    large = large_sets(paper)
    assert all(key[3] not in large for keys in members(groups, "embeds").values() for key in keys)
    assert all(search_threads(paper, key[3]) == 1 for keys in members(groups, "scores").values() for key in keys)


BEHIND = {
    "corpora": corpus_references,
    "evaluations": lambda project, name: [*corpus_references(project, name), *evaluation_parts(project, name)],
    "examples": lambda project, name: examples_inputs(project, name)["others"],
}


@pytest.mark.parametrize("name", sorted(BEHIND))
def test_no_group_waits_for_one_that_waits_for_it(paper, groups, name):
    number = {key[0]: group for group, keys in members(groups, name).items() for key in keys}
    waits = {(group, number[other]) for job, group in number.items() for other in BEHIND[name](paper, job) if other in number}
    assert waits
    assert all(later > earlier for later, earlier in waits)


def test_without_a_size_a_job_goes_alone(paper):
    (key,) = members(Groups(paper, SIZES), "examples")[0][:1]
    assert Groups(paper, {}).group("examples", key) is None
    assert Groups(paper, {"examples": 1}).group("examples", key) is None
    assert Groups(paper, SIZES).group("examples", key) == "examples-0"
    assert Groups(paper, SIZES).group("examples", ("unheard_of",)) is None
