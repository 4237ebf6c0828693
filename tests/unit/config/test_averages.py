"""Averages of tables: each names columns of scores that are there, once, and never itself."""

import re
from dataclasses import replace

import pytest
from ruamel.yaml import YAML
from test_papers import ROOT, project

from crosslign.config import references
from crosslign.config.cells import resolve_table
from crosslign.errors import InputError

SCORED = {"task": "tatoeba", "subset": "deu", "metric": "accuracy"}


@pytest.fixture(scope="module")
def kept():
    return project("quickstart")


@pytest.fixture
def loaded(kept):
    return replace(kept)  # remembers nothing of what other tests changed


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"m": ["a", "z"]}, r"tables\.t\.columns\.3\.mean_of: .*'z'.*a, b, m"),
        ({"m": ["a", "m"]}, r"tables\.t\.columns\.m: .*m -> m$"),
        ({"m": ["n"], "n": ["a", "m"]}, r"tables\.t\.columns\.m: .*m -> n -> m$"),
        ({"m": ["a", "counted"]}, r"tables\.t\.columns\.3\.mean_of: .*'counted'"),
    ],
)
def test_an_average_that_cannot_be_made_is_refused(loaded, monkeypatch, columns, said):
    check(
        loaded,
        monkeypatch,
        [{"label": "a", **SCORED}, {"label": "b", **SCORED}, {"label": "counted", "count": "rows", "of": "x"}],
        columns,
        said,
    )


def test_an_average_over_one_of_two_columns_of_a_name_is_refused(loaded, monkeypatch):
    check(loaded, monkeypatch, [{"label": "a", **SCORED}, {"label": "a", **SCORED}], {"m": ["a"]}, r"columns\.2\.mean_of: 2 .*'a'")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"splits": {"tset": "devtest"}},
            r"tasks\.flores200\.splits\.tset: .*'tset'.*'test'",
        ),
        ({"lengths": {"tset": 8}}, r"tasks\.flores200\.lengths\.tset: .*unknown.*flores200 'tset'"),
        (
            {"averages": {"tail": {"all_but": ["head"]}, "head": {"all_but": ["tail"]}}},
            r"tasks\.flores200\.averages\.tail: .*tail -> head -> tail$",
        ),
        ({"languages": {"tail": {"all_but": ["tail"]}}}, r"tasks\.flores200\.languages\.tail: .*tail -> tail$"),
        ({"averages": {"deu_Latn": ["deu_Latn", "fra_Latn"]}}, r"tasks\.flores200\.averages\.deu_Latn: .*deu_Latn -> deu_Latn$"),
    ],
)
def test_a_task_names_its_evaluation_corpora_and_no_average_is_made_from_itself(loaded, monkeypatch, changed, said):
    """A split of a role that the task lacks was passed over, and all splits were scored; a mean named as a subset hid its score."""
    monkeypatch.setitem(loaded.tasks, "flores200", {**loaded.tasks["flores200"], **changed})
    with pytest.raises(InputError, match=said):
        references.check_references(loaded, {})


def check(loaded, monkeypatch, columns, averages, said):
    """Check a table of these columns and averages; it is refused with these words."""
    made = [*columns, *({"label": label, "mean_of": members} for label, members in averages.items())]
    monkeypatch.setitem(loaded.tables, "t", {"title": "", "columns": made, "rows": [{"label": "r"}]})
    monkeypatch.setitem(loaded.paper_of, "t", "quickstart")
    with pytest.raises(InputError, match=said):
        references.check_references(loaded, {})


def test_the_table_of_the_page_on_tables_is_one(loaded):
    page = (ROOT / "docs" / "add-a-system.md").read_text(encoding="utf-8")
    block = YAML(typ="safe").load(re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)[-1])
    own = replace(loaded, tables=block["tables"], paper_of={**loaded.paper_of, "mine": "mine"})
    references.check_references(own, {})
    cells = resolve_table(own, "mine")["cells"]
    assert all("scores" in row[0] and row[2] == {"mean_of": ["into English", "out of English"]} for row in cells)
