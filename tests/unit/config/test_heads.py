"""Which runs give logits on which evaluation corpora, and what a table says where none can."""

from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.cells import resolve_table
from crosslign.config.graph import run_head
from crosslign.config.load import load_project
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
HEAD = {"kind": "classification", "labels": 3}
FINETUNE = {
    "parts": {"label": HEAD},
    "terms": [
        {"objective": "supervised_contrastive", "examples": "nli_en", "batch": 8},
        {"objective": "cross_entropy", "part": "label", "examples": "nli_en", "batch": 8},
    ],
    "train": {"steps": 2, "learning_rate": 1e-5},
    "readout": "cls_t32",
}
NLI = {"scorer": "classification", "texts": {"test": "tatoeba"}, "output": "logits", "main": {"metric": "accuracy", "subset": "en"}}


@pytest.fixture
def project():
    """Return the quick start with a task on logits, a fine-tune, and a table of both kinds of columns."""
    loaded = load_project(ROOT, {"scale": "quick", "papers": ["quickstart"], "targets": ["all"]})
    columns = [
        {"label": "NLI", "task": "nli", "subset": "en", "metric": "accuracy", "finetune": "nli"},
        {"label": "no head", "task": "nli", "subset": "en", "metric": "accuracy"},
    ]
    rows = [{"label": "trained", "system": "QS-P"}, {"label": "untouched", "system": "minilm_l6"}]
    tasks = {name: task for name, task in loaded.tasks.items() if "tatoeba" not in task["texts"].values()}
    return replace(
        loaded,
        tasks={**tasks, "nli": NLI},
        finetunes={"nli": FINETUNE},
        tables={"t": {"title": "t", "columns": columns, "rows": rows}},
        paper_of={**loaded.paper_of, "nli": "quickstart", "t": "quickstart"},
    )


def test_a_fine_tuned_run_gives_the_logits_of_the_part_that_its_cross_entropy_trains(project):
    for run in ("QS-P+nli-s42", "minilm_l6+nli-s42"):
        assert run_head(project, run, "tatoeba") == {"name": "label", "entry": HEAD}
        assert run_head(project, run, "quickstart") == {}


def test_a_run_without_a_head_is_refused_and_its_cell_says_why(project):
    with pytest.raises(InputError, match=r"QS-P-s42 .*'tatoeba'"):
        run_head(project, "QS-P-s42", "tatoeba")
    cells = resolve_table(project, "t")["cells"]
    assert [["reason" in cell for cell in row] for row in cells] == [[False, True], [False, True]]
    assert "classification head" in cells[0][1]["reason"]
    assert cells[1][0]["scores"] == ["scores/minilm_l6+nli-s42/last/cls_t32/nli.json"]


def test_one_text_set_has_one_kind_of_output(project):
    both = replace(project, tasks={**project.tasks, "other": {**NLI, "output": "vectors"}})
    with pytest.raises(InputError, match=r"config/tasks\.yaml: .*vectors.*logits.*'tatoeba'"):
        run_head(both, "QS-P+nli-s42", "tatoeba")
