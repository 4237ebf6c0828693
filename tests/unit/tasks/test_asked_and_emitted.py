"""What tables, figures and selections ask of a task is what its scorer emits: subset, metric, protocol and direction."""

import math
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from crosslign.config.asked import given
from crosslign.config.cells import SELECT, resolve_table
from crosslign.config.figures import figure_inputs
from crosslign.config.load import load_project
from crosslign.config.resolve import entry_of
from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.paths import CATALOG
from crosslign.tasks.records import bounds_of
from crosslign.tasks.score import score

ROOT = Path(__file__).resolve().parents[3]
PAPERS = sorted(path.stem for path in (CATALOG / "papers").glob("*.yaml"))
PAIRED = {"sts": ("first", "second"), "pair_classification": ("first", "second"), "average_precision": ("query", "candidate")}
WITHOUT_RESAMPLES = {"nearest_sentences"}


@pytest.fixture(scope="module")
def project():
    return load_project(ROOT, {"scale": "paper", "papers": PAPERS, "targets": ["all"]})


@pytest.fixture(scope="module")
def asked(project):
    """Return, by task, what is asked of it, and where."""
    found = defaultdict(dict)

    def note(select, where):
        if select["task"] in project.tasks:
            found[select["task"]].setdefault(tuple(select.get(key, "") for key in SELECT[1:]), where)

    def walk(cell, where):
        if "select" in cell:
            note(cell["select"], where)
        for part in cell.get("parts", []):
            walk(part, where)

    for name in project.tables:
        table = resolve_table(project, name)
        for column in table["columns"]:
            if "task" in column and not any("direction" in row for row in table["rows"]):  # also where no row is run
                note(column, name)
        for row in table["cells"]:
            for cell in row:
                walk(cell, name)
    for name in project.figures:
        for panel in figure_inputs(project, name)["inputs"]["panels"]:
            for cell in panel.get("cells", []):
                walk(cell, name)
    return found


def subsets_of(task):
    """Return the subsets that a task's own entry names, without averages."""
    averages = task.get("averages", {})
    groups = {**averages, **task.get("languages", {})}
    named = {subset for value in groups.values() if isinstance(value, list) for subset in value}
    if any(not isinstance(value, list) for value in groups.values()):  # all, or all but some: there must be others
        named |= {"eng_Latn", "aaa_Latn", "bbb_Latn"}
    if task["main"]["subset"] not in groups:
        named.add(task["main"]["subset"])
    return sorted(named) or ["en"]


def small_set(task):
    """Return an evaluation of three items a subset and side, of the kind that the task's scorer reads."""
    builder, scorer = EvaluationBuilder("tiny"), task["scorer"]
    if scorer == "nearest_sentences":
        for role in ("query", "candidate"):
            for number in range(4):
                builder.item(f"{role} {number}", "en", role, "en", f"{role} {number}")
        return builder.build()
    for subset in subsets_of(task):
        if scorer in ("retrieval", "xsim", "bitext_mining", *PAIRED):
            left, right = PAIRED.get(scorer, ("source", "target"))
            for number in range(3):
                builder.item(f"{subset} l{number}", subset, left, "xx", f"{subset} l{number}")
                builder.item(f"{subset} r{number}", subset, right, "en", f"{subset} r{number}")
                builder.link(subset, f"{subset} l{number}", f"{subset} r{number}", score=float(number % 2 if left == "first" else 1))
            continue
        role = "choice" if scorer == "multiple_choice" else "sentence"
        for split in ("train", "test") if scorer in ("linear_classification", "language_probe") else ("test",):
            for number in range(4):
                text, group = f"{subset} {split} {number}", str(number // 2 if scorer == "multiple_choice" else number)
                builder.item(text, subset, role, subset, text, split=split, label=[number % 2], group=group)
    return builder.build()


def emitted(name, task, clusters=2, gold=True):
    """Return what the task's scorer gives for small sets: all of its metrics, whatever they are worth."""
    evaluation, draw = small_set(task), np.random.default_rng(0)
    evaluation = evaluation if gold else replace(evaluation, gold=evaluation.gold[:0])
    width = {"multiple_choice": 1, "multi_label": 3}.get(task["scorer"], 8)
    matrix = draw.normal(size=(evaluation.texts.num_rows, width)).astype(np.float32)
    entry = {key: value for key, value in task.items() if key != "splits"}
    entry |= {} if task["scorer"] in WITHOUT_RESAMPLES else {"resamples": 0}
    entry |= {"k": clusters} if task["scorer"] == "clustering_purity" else {}  # two: the small set has items enough
    records = score(name, entry, dict.fromkeys(task["texts"], matrix), dict.fromkeys(task["texts"], evaluation))
    return {(record.subset, record.metric, record.protocol, record.direction) for record in records}


@pytest.mark.filterwarnings("ignore")
def test_every_metric_that_is_no_count_or_divergence_has_bounds(project):
    one_of_each = {task["scorer"]: name for name, task in project.tasks.items()}
    emitted_metrics = {record[1] for name in one_of_each.values() for record in emitted(name, project.tasks[name])}
    assert {"map_at_20", "mrr_at_20", "recall_cap", "exact_match", "top1_in_gold", "isotropy", "cosine"} <= emitted_metrics
    unbounded = {metric for metric in emitted_metrics if math.inf in map(abs, bounds_of(metric))}
    assert unbounded - {"calinski_harabasz", "mae", "extracted"} == {metric for metric in unbounded if metric.startswith("kl_")}
    assert bounds_of("cosine") == bounds_of("spearman") == (-1.0, 1.0)
    assert bounds_of("mrr_at_20") == bounds_of("map@20") == (0.0, 1.0)


@pytest.mark.filterwarnings("ignore")
def test_what_the_configuration_takes_for_given_is_what_scorers_give(project):
    for name, task in project.tasks.items():
        expected = {record for metrics, protocols, directions in given(task) for record in product(metrics, protocols, directions)}
        assert {record[1:] for record in emitted(name, task)} == expected, name


@pytest.mark.filterwarnings("ignore")
def test_what_has_nothing_to_measure_gives_the_same_records_undefined(project):
    """Without gold links, or with fewer items than clusters; else a cell would lack its record, and end its table."""
    one_of_each = {task["scorer"]: (name, task) for name, task in project.tasks.items()}
    for scorer in ("retrieval", "xsim", "bitext_mining", "clustering_purity", *PAIRED):
        name, task = one_of_each[scorer]
        assert emitted(name, task, clusters=100, gold=False) == emitted(name, task), scorer


@pytest.mark.filterwarnings("ignore")
def test_every_cell_and_selection_asks_for_what_its_scorer_emits(project, asked):
    selects = defaultdict(list)
    for system in (*project.systems, *(f"{next(iter(project.encoders))}+{finetune}" for finetune in project.finetunes)):
        for choice in entry_of(project, system).get("select", {}).values():
            selects[choice["task"]].append((system, choice))
    assert len(asked) > 35
    wrong = []
    for name in sorted({*asked, *selects}):
        records = emitted(name, project.tasks[name])
        wrong += [f"{where}: {name} {wanted}" for wanted, where in asked[name].items() if wanted not in records]
        for system, choice in selects[name]:
            keys = [key for key in SELECT[1:] if key in choice]
            wanted = [choice[key] for key in keys]
            if not any([dict(zip(SELECT[1:], record, strict=True))[key] for key in keys] == wanted for record in records):
                wrong.append(f"{system}: {name} {wanted}")
    assert wrong == []
