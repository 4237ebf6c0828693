"""Figures of vectors: nearest sentences of a pool, and the cosines of translations."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError
from crosslign.files import write_rows
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._draw import draw


@pytest.fixture
def inputs(tmp_path):
    """Write an evaluation corpus and one matrix, and return what a figure is given."""

    def make(builder, vectors):
        evaluation = builder.build()
        for part in ("texts", "items"):
            write_rows(tmp_path / f"{part}.parquet", getattr(evaluation, part), part)
        rows = [vectors[row["lang"], row["text"]] for row in evaluation.texts.to_pylist()]
        np.save(tmp_path / "m.npy", np.array(rows, dtype=np.float32))
        panels = [{"label": "ours", "matrix": str(tmp_path / "m.npy")}]
        return {"panels": panels, **{part: str(tmp_path / f"{part}.parquet") for part in ("texts", "items")}}

    return make


@pytest.fixture
def out(tmp_path):
    return {form: tmp_path / f"figure.{form}" for form in ("png", "svg", "csv")}


def drawn(kind, inputs, out, **entry):
    draw({"kind": kind, "title": "A title", **entry}, {"scale": "paper", "stand_in": False, **inputs}, out)
    assert out["png"].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in out["svg"].read_text(encoding="utf-8")
    with open(out["csv"], encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_nearest_sentences_without_copies_of_the_query(inputs, out):
    builder = EvaluationBuilder("pool")
    builder.item("query-1", "en", "query", "en", "a dog")
    vectors = {("en", "a dog"): (1.0, 0.0), ("en", "a cat"): (3.0, 4.0), ("en", "a hound"): (4.0, 3.0), ("en", "rain"): (0.0, 1.0)}
    for number, (_, text) in enumerate(vectors):
        builder.item(f"sentence-{number}", "en", "candidate", "en", text)
    rows = drawn("nearest", inputs(builder, vectors), out, top=2)
    assert [(row["query"], row["rank"], row["cosine"], row["sentence"]) for row in rows] == [
        ("a dog", "1", "0.800", "a hound"),
        ("a dog", "2", "0.600", "a cat"),
    ]


def test_nearest_needs_queries(inputs, out):
    builder = EvaluationBuilder("pool")
    builder.item("sentence-0", "en", "candidate", "en", "rain")
    with pytest.raises(InputError, match=r"items\.parquet: .*nearest .*queries"):
        drawn("nearest", inputs(builder, {("en", "rain"): (0.0, 1.0)}), out)


TRANSLATIONS = {
    ("en", "one"): (1.0, 0.0), ("de", "eins"): (3.0, 4.0), ("fr", "un"): (4.0, 3.0),
    ("en", "two"): (0.0, 1.0), ("de", "zwei"): (0.0, 2.0), ("fr", "deux"): (1.0, 0.0),
}  # fmt: skip


def test_cosines_of_translations_by_pair_of_languages(inputs, out):
    builder = EvaluationBuilder("parallel")
    for at, (lang, text) in enumerate(TRANSLATIONS):
        builder.item(text, "x", "source", lang, text, group=f"g{at // 3}")
    rows = drawn("heatmap", inputs(builder, TRANSLATIONS), out, groups=2, companion="mean_cosine")
    found = {(row["group"], row["first"], row["second"]): float(row["cosine"]) for row in rows}
    assert found == pytest.approx(
        {
            ("g0", "de", "en"): 0.6, ("g0", "de", "fr"): 0.96, ("g0", "en", "fr"): 0.8,
            ("g1", "de", "en"): 1.0, ("g1", "de", "fr"): 0.0, ("g1", "en", "fr"): 0.0,
        },
        abs=1e-6,
    )  # fmt: skip
    assert [float(row["mean_cosine"]) for row in rows] == pytest.approx([(0.6 + 0.96 + 0.8 + 1) / 6] * 6)


def test_single_sentences_have_a_panel_each_and_every_pair_once(inputs, out):
    builder = EvaluationBuilder("parallel")
    for at, (lang, text) in enumerate(TRANSLATIONS):
        builder.item(text, "x", "source", lang, text, group=f"g{9 - at // 3}")
    given = inputs(builder, TRANSLATIONS)
    given["panels"].append({**given["panels"][0], "label": "theirs"})
    rows = drawn("pair_cosines", given, out, groups=2)
    assert [row["sentence"] for row in rows[::6]] == ["one", "two"]
    assert [(row["first"], row["second"], row["system"]) for row in rows[:6]] == [
        (*pair, label) for label in ("ours", "theirs") for pair in (("en", "de"), ("en", "fr"), ("de", "fr"))
    ]
    assert [float(row["cosine"]) for row in rows[:3]] == pytest.approx([0.6, 0.8, 0.96])
    assert [float(row["cosine"]) for row in rows[6:9]] == pytest.approx([1.0, 0.0, 0.0])


def test_a_system_whose_data_lacks_is_left_out_and_named(inputs, out):
    builder = EvaluationBuilder("pool")
    builder.item("query-1", "en", "query", "en", "a dog")
    builder.item("sentence-1", "en", "candidate", "en", "a cat")
    given = inputs(builder, {("en", "a dog"): (1.0, 0.0), ("en", "a cat"): (3.0, 4.0)})
    given["panels"].append({"label": "theirs", "reason": "x must be fetched by hand"})
    assert [row["panel"] for row in drawn("nearest", given, out)] == ["ours"]
    alone = {"panels": given["panels"][1:]}
    assert drawn("nearest", alone, out) == [{"system": "theirs", "reason": "x must be fetched by hand"}]


def test_bars_of_systems_without_scores_say_why(out):
    panels = [{"label": name, "cells": [{"reason": "no weights"}, {"reason": "withdrawn"}]} for name in ("a", "b")]
    assert drawn("bars", {"panels": panels}, out) == [{"system": name, "reason": "no weights"} for name in ("a", "b")]


@pytest.mark.parametrize(
    ("scale", "stand_in", "said"), [("paper", False, ""), ("quick", True, "\n(scale quick, reduced) – synthetic data, scores mean nothing")]
)
def test_a_figure_of_a_reduced_scale_says_so_in_its_title(out, monkeypatch, scale, stand_in, said):
    shown = []
    monkeypatch.setattr(FIGURES, "get", lambda kind: lambda entry, inputs, out: shown.append(entry["title"]))
    draw({"kind": "bars", "title": "A title"}, {"panels": [{"label": "a"}], "scale": scale, "stand_in": stand_in}, out)
    assert shown == [f"A title{said}"]
