"""What a column, a figure or a selection asks of an evaluation, and a figure's lists, are looked up when the configuration is read."""

from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.asked import check_asked
from crosslign.config.load import load_project
from crosslign.config.references import check_references
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
TATOEBA = {"task": "tatoeba", "subset": "fra", "metric": "accuracy", "direction": "xx2en"}
BUCC = {"task": "bucc", "subset": "de-en", "metric": "f1", "protocol": "xtreme"}


@pytest.fixture(scope="module")
def kept():
    return load_project(ROOT, {"scale": "paper", "papers": ["quickstart", "mpcl"], "targets": ["all"]})


@pytest.fixture
def loaded(kept):
    return replace(kept)  # remembers nothing of what other tests changed


WRONG = [
    ({**TATOEBA, "metric": "acuracy"}, "metric: tatoeba.*'acuracy'.*'accuracy'"),
    ({**TATOEBA, "direction": "xx2eng"}, "direction: tatoeba.*'xx2eng'.*'xx2en'"),
    (
        {key: value for key, value in TATOEBA.items() if key != "direction"},
        "tatoeba .*without.*: en2xx, mean",
    ),
    ({**TATOEBA, "subset": "tatoeba63"}, "subset: tatoeba.*'tatoeba63'.*'tatoeba36'"),
    ({**TATOEBA, "subset": "fre"}, "subset: tatoeba.*'fre'.*afr"),
    ({**TATOEBA, "metric": "weighted_f1", "protocol": "mteb", "direction": "en2xx"}, "'en2xx'.*xx2en"),
    ({**BUCC, "protocol": "sampel_oracle"}, "protocol: bucc.*'sampel_oracle'"),
    ({**BUCC, "metric": "accuracy"}, "bucc.*'xtreme'.*mteb"),
    ({**BUCC, "subset": "de"}, "bucc.*'de'"),
    ({**BUCC, "subset": "it-en"}, "bucc.*'it-en'"),
    ({"task": "sts22", "subset": "de-tr", "metric": "spearman"}, "sts22.*'de-tr'"),
    ({"task": "xnli", "subset": "ja", "metric": "accuracy"}, "xnli.*'ja'"),
    ({"task": "language_identity", "subset": "de", "metric": "accuracy"}, "language_identity.*'de'.*far, near"),
    ({"task": "lareqa", "subset": "avg", "metric": "map_at_10"}, "lareqa.*'map_at_10'.*'map_at_20'"),
    ({"task": "flores200", "subset": "haed", "metric": "accuracy", "direction": "xx2en"}, "flores200.*'haed'"),
]
RIGHT = [
    TATOEBA, BUCC, {"task": "sts12", "subset": "a track of its own", "metric": "pearson"}, {**TATOEBA, "protocol": "strict"},
    {"task": "paws_x", "subset": "ja", "metric": "accuracy", "protocol": "clean"},
    {"task": "sts17", "subset": "tr-en", "metric": "spearman"}, {"task": "language_identity", "subset": "far"},
    {"task": "flores200", "subset": "deu_Latn", "metric": "accuracy", "direction": "mean"},
    {"task": "tatoeba_bible", "subset": "de", "metric": "accuracy", "direction": "en2xx"},
]  # fmt: skip


@pytest.mark.parametrize("form", ["column", "part", "cell", "select"])
@pytest.mark.parametrize(("asked", "said"), WRONG)
def test_what_no_scorer_gives_is_refused_with_its_place(loaded, monkeypatch, asked, said, form):
    if form == "select" and "direction" not in asked and asked["task"] == "tatoeba":
        return  # a selection takes whatever direction there is
    declare(loaded, monkeypatch, asked, form)
    place = {"column": "tables.t.columns.0", "part": "tables.t.columns.0", "cell": "figures.f.cells.0", "select": "systems.s.select.best"}[
        form
    ]
    with pytest.raises(InputError, match=f"config/papers/mpcl.yaml: {place}.*{said}"):
        check_asked(loaded, {})


@pytest.mark.parametrize("asked", RIGHT)
def test_what_a_scorer_may_give_is_let_through(loaded, monkeypatch, asked):
    for form in ("column", "part", "cell", "select"):
        declare(loaded, monkeypatch, asked, form)
    check_asked(loaded, {})


def test_a_row_may_name_direction_and_protocol(loaded, monkeypatch):
    asked = {key: value for key, value in TATOEBA.items() if key != "direction"}
    declare(loaded, monkeypatch, asked, "column", rows=[{"label": "r", "system": "xlm-r", "direction": "en2xx"}])
    check_asked(loaded, {})
    rows = [{"label": "r", "system": "xlm-r", "direction": "xx2en"}, {"label": "s", "system": "xlm-r", "protocol": "random"}]
    declare(loaded, monkeypatch, {"task": "tnews", "subset": "zh", "metric": "purity"}, "column", rows=rows[1:])
    check_asked(loaded, {})
    declare(loaded, monkeypatch, TATOEBA, "column", rows=rows)
    with pytest.raises(InputError, match=r"tables\.t\.columns\.0\.protocol: .*tatoeba.*'random'"):
        check_asked(loaded, {})


@pytest.mark.parametrize(
    ("main", "said"),
    [({"metric": "f2", "protocol": "xtreme"}, "bucc.*'f2'"), ({"metric": "f1"}, "bucc.*sample_oracle")],
)
def test_a_main_score_that_its_scorer_does_not_give_is_refused(loaded, monkeypatch, main, said):
    monkeypatch.setitem(loaded.tasks, "bucc", {**loaded.tasks["bucc"], "main": {"subset": "avg", **main}})
    with pytest.raises(InputError, match=rf"config/tasks.yaml: tasks.bucc.main\..*{said}"):
        check_asked(loaded, {})


def declare(loaded, monkeypatch, asked, form, rows=()):
    """Put an entry that asks for this among those of the project."""
    entries = {
        "column": ("tables", "t", {"title": "", "columns": [{"label": "c", **asked}], "rows": list(rows)}),
        "part": ("tables", "t", {"title": "", "columns": [{"label": "c", "mean_of": [asked]}], "rows": list(rows)}),
        "cell": ("figures", "f", {"kind": "bars", "title": "", "from": [], "cells": [asked]}),
        "select": ("systems", "s", {"select": {"best": {**asked, "every": 1}}}),
    }
    section, name, entry = entries[form]
    monkeypatch.setitem(getattr(loaded, section), name, entry)
    monkeypatch.setitem(loaded.paper_of, name, "mpcl")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "lines"}, r"figures\.f: .*`x`"),
        ({"kind": "tsne"}, r"figures\.f: .*`text_set`"),
        ({"cells": None}, r"figures\.f: .*`cells`"),
        ({"companion": "neighbour_rate"}, r"figures\.f\.companion: .*bars.*`companion`.*tsne, heatmap"),
        ({"labels": ["one"]}, "figures.f.labels: 1.*2"),
        ({"against": ["labse"]}, "figures.f.against: 1.*2"),
        ({"kind": "lines", "x": [1, 2, 3]}, "figures.f.x: 3.*2"),
        ({"places": ["here"]}, "figures.f.places: 1.*2"),
        ({"places": ["here", "there"], "against": ["labse", "labse"]}, "figures.f.against: .*`places`.*`against`"),
        ({"places": ["here", "there"], "seen": ["en"]}, "figures.f.seen: .*`places`.*`seen`"),
    ],
)
def test_a_figure_without_what_its_kind_reads_is_refused(monkeypatch, change, said):
    loaded = load_project(ROOT, {"scale": "laptop", "papers": ["quickstart"]})
    entry = {"kind": "bars", "title": "", "from": ["labse", "xlm-r"], "cells": [TATOEBA], **change}
    monkeypatch.setitem(loaded.figures, "f", {key: value for key, value in entry.items() if value is not None})
    monkeypatch.setitem(loaded.paper_of, "f", "quickstart")
    with pytest.raises(InputError, match=said):
        check_references(loaded, {})
