"""Tuned systems: what is tried, what a tuned recipe says, what stands behind its runs, and what is refused."""

from copy import deepcopy

import pytest
import yaml
from small_configuration import PAPER, write_project

from crosslign.config.ancestors import lineage_behind
from crosslign.config.budgets import budget_of
from crosslign.config.cells import counted_rows, resolve_table
from crosslign.config.graph import ancestors, choice_inputs, trial_folders
from crosslign.config.load import load_project
from crosslign.config.resolve import put, resolve, runs_of
from crosslign.config.trials import points
from crosslign.errors import InputError

RATE, HEAT = "train.learning_rate", "terms.0.temperature"
BY = {"task": "find", "subset": "avg", "metric": "accuracy", "direction": "xx2en"}
TUNE = {"values": {RATE: [1e-4, 4e-4], HEAT: [0.05, 0.1]}, "by": BY}


@pytest.fixture
def project(tmp_path):
    """Write the small project with tuned systems T and U (from T) and a table of T; `change` edits the paper's file."""
    folder = write_project(tmp_path / "project")

    def load(change=lambda paper: None):
        path = folder / PAPER
        paper = yaml.safe_load(path.read_text(encoding="utf-8"))
        first = {key: value for key, value in paper["systems"]["P-A"].items() if key != "select"}
        tuned = {"train": {"budget": 1e9, "learning_rate": 1e-3}, "seeds": [42, 43, 44, 45, 46]}
        paper["systems"]["T"] = {**deepcopy(first), **deepcopy(tuned), "tune": deepcopy(TUNE)}
        paper["systems"]["U"] = {"like": "T", "base": {"system": "T"}, "tune": {"trials": 2}}
        column = {"label": "x", "task": "sts_written", "subset": "cross", "metric": "spearman"}
        rows = [{"label": "none", "system": "tiny"}, {"label": "tuned", "system": "T"}]
        paper["tables"] = {"equal": {"title": "T", "budget": 1e9, "columns": [column], "rows": rows}}
        for section in ("figures", "claims"):
            paper.pop(section, None)
        change(paper)
        path.write_text(yaml.safe_dump(paper, sort_keys=False), encoding="utf-8")
        return load_project(folder, {"scale": "mini", "papers": ["one"], "targets": ["all"]})

    return load


def test_a_grid_is_tried_whole_or_by_points_that_a_seed_draws():
    whole = points(TUNE)
    assert whole == [{RATE: rate, HEAT: heat} for rate in (1e-4, 4e-4) for heat in (0.05, 0.1)]
    drawn = [points({**TUNE, "trials": 2, "seed": seed}) for seed in range(40)]
    assert all(len(two) == 2 and two == [point for point in whole if point in two] for two in drawn)
    assert len({str(two) for two in drawn}) == 6  # each pair of four points
    assert drawn[0] == points({**TUNE, "trials": 2, "seed": 0})


def test_each_trial_is_a_system_at_its_values_that_is_judged_after_its_last_step(project):
    found = project()
    trials = [name for name in found.systems if name.startswith("T-t")]
    assert trials == ["T-t1", "T-t2", "T-t3", "T-t4"]
    assert runs_of(found, "T-t3") == ["T-t3-s1"]
    recipe = resolve(found, "T-t3", 1)
    assert (recipe["train"]["learning_rate"], recipe["terms"][0]["temperature"]) == (4e-4, 0.05)
    assert recipe["select"]["dev"]["task"] == "find"
    assert recipe["select"]["dev"]["keep"] is False
    assert recipe["train"]["guards"] == {"not_finite": "mark"}
    assert list(trial_folders(found, "T")) == [f"{trial}-s1" for trial in trials]


def test_the_recipe_of_a_tuned_run_names_no_value_that_was_not_used(project):
    found = project()
    recipe = resolve(found, "T", 42)
    assert recipe["train"]["learning_rate"] == recipe["terms"][0]["temperature"] == "chosen"
    assert "select" not in found.systems["T"]
    chosen = put(recipe, {RATE: 4e-4, HEAT: 0.1})
    assert (chosen["train"]["learning_rate"], chosen["terms"][0]["temperature"]) == (4e-4, 0.1)
    assert recipe["train"]["learning_rate"] == "chosen"
    assert "chosen" not in str(resolve(found, "P-A", 42))


def test_trials_stand_behind_a_tuned_run_and_are_cost_but_no_budget(project):
    found = project()
    recipe = resolve(found, "T", 42)
    choice = found.paths.choice("T")
    assert choice_inputs(found, recipe) == {"choice": choice}
    assert choice_inputs(found, resolve(found, "P-A", 42)) == {}
    behind = ancestors(found, [("run", "T-s42")])
    assert {("choice", "T"), ("run", "T-t1-s1"), ("run", "T-t4-s1"), ("task", "find")} <= set(behind)
    counts = found.paths.counts("equal")
    lineage = lineage_behind(found, [counts], lambda view: [])
    assert choice.with_name("T.json.lineage.json") in lineage
    assert found.paths.system("T-t2-s1") in lineage
    assert budget_of(found, "T") == 1e9
    table = resolve_table(found, "equal")
    assert table["spent"] == [[], [[run] for run in runs_of(found, "T")]]
    assert table["tuned"] == {"trials": 4, "by": ["find"]}
    assert {name for kind, name in counted_rows(found, "equal") if kind == "systems"} == set(runs_of(found, "T"))


def test_a_table_says_of_a_row_all_trials_that_it_starts_from(project):
    def second(paper):
        paper["systems"]["T"]["train"]["budget"] = paper["systems"]["U"].setdefault("train", {})["budget"] = 5e8
        paper["tables"]["equal"]["rows"][1]["system"] = "U"

    table = resolve_table(project(second), "equal")
    assert table["tuned"]["trials"] == 6
    assert table["spent"][1][0] == ["U-s42", "T-s42"]


def row(paper, system):
    paper["tables"]["equal"]["rows"].append({"label": "more", "system": system})


def untuned(paper):
    paper["systems"]["V"] = {**paper["systems"]["P-A"], "train": {"budget": 1e9, "learning_rate": 1e-3}}
    row(paper, "V")


def tried(place, *values):
    return lambda paper: paper["systems"]["T"]["tune"]["values"].update({place: list(values)})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (tried("train.learning_rat", 1, 2), r"one\.yaml:\d+: systems\.T\.tune\.values\.train\.learning_rat: T .*'train\.learning_rat'"),
        (tried("train.max_length", 8, 16), r"tune\.values\.train\.max_length: 'train\.max_length'.*cost"),
        (tried("terms.0.objective", 1, 2), r"systems\.T\.tune\.values\.terms\.0\.objective: .*'infonce'"),
        (tried(RATE, 1e-4, -1.0), r"learning_rate: -1\.0 .*-1\.0 .* 0$"),
        (tried(HEAT, 0.0), r"terms\.0\.temperature: 0\.0 .*0\.0 .* 0$"),
        (lambda p: p["systems"]["T"]["tune"].pop("by"), "tune: T .*`tune: by`"),
        (lambda p: p["systems"]["T"]["tune"].update(trials=5), r"tune\.trials: 5 .* 4 "),
        (lambda p: p["systems"]["T"].update(seeds=[42, 43]), r"systems\.T\.tune: .* 5 .*\[42, 43\].* 1 "),
        (lambda p: p["systems"]["T"]["tune"].update(seed=42), r"systems\.T\.tune: .*\[42, 43, 44, 45, 46\].* 42 "),
        (lambda p: p["systems"]["T"].update(checkpoint="last"), r"systems\.T\.tune: .*`checkpoint`"),
        (lambda p: p["systems"]["T"]["tune"]["by"].update(task="fin"), r"systems\.T\.tune\.by\.task: .*'fin'"),
        (lambda p: p["systems"]["T"]["tune"]["by"].update(metric="f1"), r"systems\.T\.tune\.by\.metric: find .*'f1'"),
        (lambda p: p["systems"]["T"]["tune"].update(by={"task": "sts_written", "subset": "mono", "metric": "spearman"}),
         r"by\.task: sts_written .* equal .*sts_written"),
        (untuned, r"tables\.equal\.rows\.2\.system: .*equal.* V .* 0 .* 4\b"),
        (lambda p: p["systems"].update({"T-t2": {"like": "T"}}), r"systems\.T\.tune: .*'T-t2'"),
        (lambda p: p["finetunes"]["ft"].update(tune=TUNE), r"finetunes\.ft\.tune: .*'tune'.*<system>\+<fine-tune>"),
    ],
)  # fmt: skip
def test_what_is_no_equal_and_honest_choice_is_refused_with_its_place(project, change, said):
    with pytest.raises(InputError, match=said):
        project(change)
