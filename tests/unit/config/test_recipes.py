"""What a recipe names of itself is looked up when the configuration is read: parts, their kinds, checkpoints, batches."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.recipes import check_recipes
from crosslign.config.resolve import resolve
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
PARTS = {
    "queue": {"kind": "momentum_queue", "size": 8},
    "gmm": {"kind": "gaussian_mixture"},
    "scores": {"kind": "rank_scores"},
    "label": {"kind": "classification", "labels": 3},
}
SYSTEM = {
    "base": {"encoder": "minilm_l6"},
    "parts": PARTS,
    "terms": [
        {"objective": "rank_infonce", "examples": "verses_parallel", "batch": 8, "queue": "queue", "classifier": "gmm", "scores": "scores"},
        {"objective": "cross_entropy", "examples": "nli_en", "batch": 4, "part": "label"},
    ],
    "train": {"steps": 2, "learning_rate": 1e-5},
    "select": {"best": {"task": "sts_written", "subset": "en-en", "metric": "spearman", "every": 1}},
    "checkpoint": {"default": "best", "sts_written": "last"},
    "readout": "cls_t32",
}
SECOND = {**SYSTEM, "base": {"system": "first"}, "parts": {**PARTS, "gmm": {"kind": "gaussian_mixture", "start_from": "base"}}}


@pytest.fixture(scope="module")
def loaded():
    return load_project(ROOT, {"scale": "quick", "papers": ["quickstart"], "targets": ["all"]})


@pytest.fixture
def systems():
    return {"first": deepcopy(SYSTEM), "second": deepcopy(SECOND)}


def project(loaded, systems):
    return replace(loaded, systems=systems, paper_of={**loaded.paper_of, **dict.fromkeys(systems, "quickstart")})


def checked(loaded, systems):
    check_recipes(project(loaded, systems), {}, ROOT / "workflow" / "schemas")


def test_a_recipe_that_names_what_it_has_is_taken(loaded, systems):
    checked(loaded, systems)


def change(systems, place, value):
    """Set a value of the second system; None takes the key away."""
    *path, last = place
    entry = systems["second"]
    for key in path:
        entry = entry[key]
    if value is None:
        del entry[last]
    else:
        entry[last] = value


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("terms", 0, "queue"), "queu", r"second\.terms\.0\.queue: unknown part of second 'queu'.*did you mean 'queue'"),
        (("terms", 0, "scores"), "label", r"terms\.0\.scores: the part 'label' is of another kind; classification, not rank_scores"),
        (("terms", 1, "part"), "gmm", r"gaussian_mixture, not classification"),
        (("parts", "mlp"), {"kind": "mlp_train_only"}, r"parts\.mlp: no term uses the part 'mlp'.*projection"),
        (("checkpoint", "sts_writen"), "best", r"unknown task 'sts_writen'.*did you mean 'sts_written'"),
        (("checkpoint", "default"), "bets", r"unknown checkpoint of second 'bets'.*did you mean 'best'"),
        (("checkpoint",), "bets", r"checkpoint: unknown checkpoint of second 'bets'"),
        (("select", "last"), SYSTEM["select"]["best"], r"'last' is the checkpoint after the last step"),
        (("select", "best", "keep"), False, r"unknown checkpoint of second 'best'"),
        (("base", "checkpoint"), "bets", r"base\.checkpoint: unknown checkpoint of first 'bets'"),
        (("base",), {"encoder": "minilm_l6"}, r"parts\.gmm\.start_from: the base has no parts to start from"),
        (("terms", 1, "examples"), "verses_parallel", r"share one batch; 8 and 4"),
    ],
)
def test_what_a_recipe_lacks_is_said_with_its_place(loaded, systems, place, value, said):
    change(systems, place, value)
    with pytest.raises(InputError, match=said):
        checked(loaded, systems)


def test_a_part_to_start_from_must_be_in_the_base(loaded, systems):
    systems["second"]["parts"]["gmm2"] = systems["second"]["parts"].pop("gmm")
    systems["second"]["terms"][0]["classifier"] = "gmm2"
    with pytest.raises(InputError, match=r"parts\.gmm2\.start_from: unknown part of first 'gmm2'"):
        checked(loaded, systems)


def test_a_recipe_may_take_its_parts_over_from_another_one(loaded, systems):
    systems["third"] = {"like": "first", "terms": [SYSTEM["terms"][1] | {"part": "labels"}]}
    with pytest.raises(InputError, match=r"third\.terms\.0\.part: unknown part of third 'labels'"):
        checked(loaded, systems)


@pytest.mark.parametrize(("named", "expected"), [({}, "best"), ({"checkpoint": "last"}, "last")])
def test_a_system_on_another_starts_from_the_checkpoint_that_is_evaluated_unless_it_names_one(loaded, systems, named, expected):
    systems["second"]["base"] |= named
    assert resolve(project(loaded, systems), "second", 42)["base"]["checkpoint"] == expected


def test_a_fine_tune_starts_from_the_checkpoint_that_is_evaluated(loaded, systems):
    own = {key: value for key, value in SYSTEM.items() if key != "base"} | {"checkpoint": "last"}
    tuned = replace(project(loaded, systems), finetunes={"nli": own})
    tuned.paper_of["nli"] = "quickstart"
    assert resolve(tuned, "first+nli", 42)["base"]["checkpoint"] == "best"
    assert resolve(tuned, "first+nli+nli", 42)["base"]["checkpoint"] == "last"
