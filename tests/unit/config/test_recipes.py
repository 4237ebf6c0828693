"""What a recipe must say, and what it names of itself, is looked up when the configuration is read: keys, parts, their kinds, batches."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.recipes import check_recipes
from crosslign.config.resolve import entry_of, resolve
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
        {"objective": "cross_entropy", "examples": "nli_rows", "batch": 4, "part": "label"},
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
    examples = {**loaded.examples, "nli_rows": {"builder": "labelled_rows", "from": ["written_nli"]}}
    return replace(loaded, systems=systems, examples=examples, paper_of={**loaded.paper_of, **dict.fromkeys(systems, "quickstart")})


def checked(loaded, systems):
    check_recipes(project(loaded, systems), {})


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
        (("terms", 0, "queue"), "queu", r"second\.terms\.0\.queue: .*'queu'.*'queue'"),
        (("terms", 0, "scores"), "label", r"terms\.0\.scores: .*'label'.*classification.*rank_scores"),
        (("terms", 1, "part"), "gmm", r"terms\.1\.part: .*'gmm'.*gaussian_mixture.*classification"),
        (("parts", "mlp"), {"kind": "mlp_train_only"}, r"parts\.mlp: .*'mlp'.*`projection:`"),
        (("base",), {"encoder": "minilm_l6"}, r"parts\.gmm\.start_from: .*parts.*encoder"),
        (("parts", "gmm", "start_from"), "encoder", r"parts\.gmm\.start_from: .*base: first.*start_from: base"),
        (("terms", 0, "examples"), "nli_rows", r"systems\.second\.terms\.1\.batch: .*8.*4"),
        (
            ("parts", "scores", "ranks"),
            2,
            r"terms\.0\.scores: .*'scores'.*4.*2",
        ),
        (("base",), {"system": "minilm_l6"}, r"base\.system: 'minilm_l6'.*base: \{encoder: minilm_l6\}"),
        (
            ("base",),
            {"encoders": {"zh": "minilm_l6", "en": "tiny_bert", "cmn": "tiny_bert"}},
            r"base\.encoders: .*'zh'.*zh, en, cmn",
        ),
        (("base",), None, r"systems\.second: .*`base`"),
        (("terms",), None, r"systems\.second: .*`terms`"),
        (("train",), None, r"systems\.second: .*`train`"),
        (("readout",), None, r"systems\.second: .*`readout`"),
        (("train", "learning_rate"), None, r"systems\.second: .*`train: learning_rate`"),
    ],
)
def test_what_a_recipe_lacks_is_said_with_its_place(loaded, systems, place, value, said):
    change(systems, place, value)
    with pytest.raises(InputError, match=said):
        checked(loaded, systems)


def test_keys_come_from_one_momentum_queue(loaded, systems):
    systems["second"]["parts"]["slower"] = {"kind": "momentum_queue", "size": 8, "momentum": 0.9}
    systems["second"]["terms"].append({"objective": "momentum_contrast", "examples": "verses_parallel", "batch": 8, "queue": "slower"})
    with pytest.raises(InputError, match=r"second\.parts\.slower: .*'queue'"):
        checked(loaded, systems)


def test_a_part_to_start_from_must_be_in_the_base(loaded, systems):
    systems["second"]["parts"]["gmm2"] = systems["second"]["parts"].pop("gmm")
    systems["second"]["terms"][0]["classifier"] = "gmm2"
    with pytest.raises(InputError, match=r"parts\.gmm2\.start_from: unknown.*'gmm2'"):
        checked(loaded, systems)


def test_a_selection_by_logits_needs_a_head(loaded, systems):
    logits = replace(project(loaded, systems), tasks={**loaded.tasks, "sts_written": {**loaded.tasks["sts_written"], "output": "logits"}})
    check_recipes(logits, {})
    systems["second"]["terms"][1]["encode"] = "sentences"
    with pytest.raises(InputError, match=r"select\.best\.task: sts_written .*cross_entropy"):
        check_recipes(logits, {})


@pytest.mark.parametrize(
    ("views", "kinds", "said"),
    [
        (["full"], ["full"], ""),
        (["full"], ["partial", "full"], r"terms\.0: .*'rows'.*'partial'.*`from`: full"),
        ([], None, r"terms\.0: .*'rows'.*`from`: none"),
    ],
)
def test_a_term_on_views_needs_them_in_its_examples(loaded, systems, views, kinds, said):
    term = {"objective": "supervised_contrastive", "examples": "rows", "batch": 8} | ({"kinds": kinds} if kinds else {})
    systems = {"first": {**SYSTEM, "parts": {}, "terms": [term]}}
    rows = {"rows": {"builder": "labelled_rows", "from": ["written_nli", *views]}}
    made = replace(project(loaded, systems), examples=rows, views={"full": {"builder": "full_translation", "from": ["written_nli"]}})
    if not said:
        check_recipes(made, {})
        return
    with pytest.raises(InputError, match=said):
        check_recipes(made, {})


@pytest.mark.parametrize("key", ["base", "like"])
def test_a_fine_tune_stands_on_no_base_of_its_own(loaded, systems, key):
    own = {name: value for name, value in SYSTEM.items() if name != "base"} | {key: {"encoder": "minilm_l6"}}
    tuned = replace(project(loaded, systems), finetunes={"nli": own})
    tuned.paper_of["nli"] = "quickstart"
    with pytest.raises(InputError, match=rf"finetunes\.nli\.{key}: .*'{key}'.*<system>\+<fine-tune>"):
        check_recipes(tuned, {})


@pytest.mark.parametrize(
    ("below", "said"),
    [("first", ""), ("minilm_l6", ".*parts.*encoder"), ("first+other", r".*first\+other 'label'")],
)
def test_what_a_fine_tune_starts_from_must_be_in_every_system_that_a_table_puts_it_on(loaded, systems, below, said):
    own = {name: value for name, value in SYSTEM.items() if name not in ("base", "select", "checkpoint")}
    head = {"label": PARTS["label"] | {"start_from": "base"}}
    finetunes = {
        "nli": {**own, "parts": head, "terms": [SYSTEM["terms"][1]]},
        "other": {**own, "parts": {}, "terms": [{"objective": "infonce", "examples": "verses_parallel", "batch": 8}]},
    }
    column = {"label": "c", "task": "sts_written", "subset": "en-en", "metric": "spearman", "finetune": "nli"}
    tables = {"t": {"title": "", "columns": [column], "rows": [{"label": "r", "system": below}]}}
    tuned = replace(project(loaded, systems), finetunes=finetunes, tables=tables)
    tuned.paper_of.update({"nli": "quickstart", "other": "quickstart", "t": "quickstart"})
    if not said:
        check_recipes(tuned, {})
        return
    with pytest.raises(InputError, match=rf"finetunes\.nli\.parts\.label\.start_from: {said}"):
        check_recipes(tuned, {})


def test_a_recipe_like_another_goes_on_from_its_own_base_and_has_its_own_parts(loaded, systems):
    own = {"base": {"system": "first", "checkpoint": "last"}, "parts": {"scores": {"kind": "rank_network"}}}
    systems["third"] = {"like": "first", **own}
    entry = entry_of(project(loaded, systems), "third")
    assert entry["base"] == own["base"]
    assert entry["parts"] == {**PARTS, "scores": {"kind": "rank_network"}}
    assert resolve(project(loaded, systems), "third", 42)["base"] == {"run": "first-s42", "checkpoint": "last"}


def test_a_recipe_may_be_like_one_that_is_itself_like_another(loaded, systems):
    systems["third"] = {"like": "first", "seeds": [1, 2], "train": {"learning_rate": 7e-5}}
    systems["fourth"] = {"like": "third", "train": {"steps": 9}}
    first, fourth = (entry_of(project(loaded, systems), name) for name in ("first", "fourth"))
    assert fourth == {**first, "seeds": [1, 2], "train": {**first["train"], "learning_rate": 7e-5, "steps": 9}}


def test_a_recipe_may_take_its_parts_over_from_another_one(loaded, systems):
    systems["third"] = {"like": "first", "terms": [SYSTEM["terms"][1] | {"part": "labels"}]}
    with pytest.raises(InputError, match=r"third\.terms\.0\.part: .*'labels'"):
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
