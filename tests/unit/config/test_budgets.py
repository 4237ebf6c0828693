"""Budgets of trainings and tables: their keys, what rows add up to, and what a table counts for them."""

from copy import deepcopy
from dataclasses import replace

import pytest
import yaml
from small_configuration import PAPER, write_project

from crosslign.config.ancestors import lineage_behind
from crosslign.config.budgets import budget_of
from crosslign.config.cells import counted_rows, resolve_table, table_scores
from crosslign.config.load import load_project
from crosslign.config.resolve import resolve
from crosslign.errors import InputError

TRAIN = {"learning_rate": 1e-3}


@pytest.fixture
def project(tmp_path):
    """Write the small project with two systems that stand on each other, and a table of them; `change` edits the paper's file."""
    folder = write_project(tmp_path / "project")

    def load(change=lambda paper: None, **limits):
        path = folder / PAPER
        paper = yaml.safe_load(path.read_text(encoding="utf-8"))
        first = next(iter(paper["systems"].values()))
        shared = {key: first[key] for key in ("base", "terms", "parts", "readout") if key in first}
        paper["systems"]["W"] = {**deepcopy(shared), "train": {**TRAIN, "budget": 3e8}, "seeds": [1, 2]}
        paper["systems"]["M"] = {"like": "W", "base": {"system": "W"}, "train": {"budget": 7e8}}
        paper["systems"]["D"] = {"like": "W", "train": {"budget": 1.005e9}}
        column = {"label": "x", **next({k: v for k, v in c.items() if k in ("task", "subset", "metric", "protocol", "direction")}
                  for t in paper["tables"].values() for c in t["columns"] if "task" in c)}  # fmt: skip
        encoder = first["base"].get("encoder", "tiny_bert")
        rows = [{"label": "none", "system": encoder}, {"label": "both", "system": "M"}, {"label": "direct", "system": "D"}]
        paper["tables"]["equal"] = {"title": "T", "budget": 1e9, "columns": [column], "rows": rows}
        change(paper)
        path.write_text(yaml.safe_dump(paper, sort_keys=False), encoding="utf-8")
        found = load_project(folder)
        return replace(found, scale={**found.scale, "limits": {**found.scale["limits"], **limits}})

    return load


def test_a_row_has_the_budget_of_all_that_it_starts_from(project):
    found = project()
    assert [budget_of(found, system) for system in ("W", "M", "D")] == [3e8, 1e9, 1.005e9]
    assert budget_of(found, next(iter(found.systems))) is None


def test_a_budget_takes_the_place_of_steps_and_the_scale_cuts_it_down(project):
    found = project(budget_share=0.25)
    train = resolve(found, "M", 1)["train"]
    assert train["budget"] == 7e8 / 4
    assert not {"steps", "epochs"} & set(train)
    table = resolve_table(found, "equal")
    assert table["budget"] == 2.5e8
    assert [[list(chain) for chain in row] for row in table["spent"]] == [[], [["M-s1", "W-s1"], ["M-s2", "W-s2"]], [["D-s1"], ["D-s2"]]]


def test_a_system_like_another_takes_over_its_length_or_none_of_it(project):
    found = project(lambda paper: paper["systems"].update(S={"like": "D", "train": {"steps": 4}}))
    assert "budget" not in resolve(found, "S", 1)["train"]


def test_a_table_with_a_budget_counts_what_its_runs_encoded(project):
    found = project()
    runs = {name for kind, name in counted_rows(found, "equal") if kind == "systems"}
    assert runs == {"M-s1", "M-s2", "W-s1", "W-s2", "D-s1", "D-s2"}
    counts = found.paths.counts("equal")
    assert counts in table_scores(found, "equal")
    assert {found.paths.system(run) for run in runs} <= set(lineage_behind(found, [counts], lambda view: []))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p["systems"]["D"]["train"].update(budget=1.02e9),
         r"one\.yaml:\d+: tables\.equal\.rows\.2\.system: .*D.*1e\+09.*D.*1\.02e\+09"),
        (lambda p: p["systems"]["W"].update(train={**TRAIN, "steps": 3}), r"rows\.1\.system: .* M .*1e\+09.*without"),
        (lambda p: p["systems"]["D"]["train"].update(steps=3), r"systems\.D\.train\.budget: .*'budget'.*'steps'"),
        (lambda p: p["systems"]["D"]["train"].update(budgt=3), r"systems\.D\.train\.budgt: .*'budgt'.*'budget'"),
        (lambda p: p["tables"]["equal"].update(budget=0), r"tables\.equal\.budget"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_with_its_place(project, change, said):
    with pytest.raises(InputError, match=said):
        project(change)
