"""Pictures of vectors in two dimensions: which groups, which are picked out, and one set of points for all rows of panels."""

from __future__ import annotations

import csv

import matplotlib as mpl
import numpy as np
import pytest

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.files import write_rows
from crosslign.reporting.figures import FIGURES, tsne
from crosslign.reporting.figures._style import PALETTE, colours_of

LANGS = ("de", "en", "fr")


@pytest.fixture
def inputs(tmp_path):
    """Ten groups of three languages, the last one incomplete, in no order of their names; two systems."""
    builder, generator = EvaluationBuilder("set"), np.random.default_rng(1)
    for number in range(10):
        for lang in LANGS[: 2 if number == 9 else 3]:
            builder.item(f"{lang}{number}", "x", "source", lang, f"{lang} {number}", group=f"g{(number * 7) % 10}")
    evaluation = builder.build()
    for part in ("texts", "items"):
        write_rows(tmp_path / f"{part}.parquet", getattr(evaluation, part), part)
    np.save(tmp_path / "m.npy", generator.normal(size=(evaluation.texts.num_rows, 8)).astype(np.float32))
    panels = [{"label": label, "matrix": str(tmp_path / "m.npy")} for label in ("A", "B")]
    return {"panels": panels, **{part: str(tmp_path / f"{part}.parquet") for part in ("texts", "items")}}


def drawn(inputs, tmp_path, **entry):
    out = {form: tmp_path / f"figure.{form}" for form in ("png", "svg", "csv")}
    FIGURES.get("tsne")({"title": "T", **entry}, inputs, out)
    with open(out["csv"], encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)), mpl.image.imread(out["png"]).shape[:2]


def test_whole_groups_stand_in_the_order_of_the_set(inputs):
    _, _, groups = tsne.parallel_rows(inputs["texts"], inputs["items"], 99)
    assert groups[::3] == ["g0", "g7", "g4", "g1", "g8", "g5", "g2", "g9", "g6"]


def test_named_places_are_marked_and_as_many_others_where_one_is_not_there():
    assert tsne.marked_of(list("abcdef"), [1, 4, 5]) == ["b", "e", "f"]
    assert tsne.marked_of(list("abcdef"), [1, 130]) == ["a", "d"]  # a reduced scale has fewer, and shows as many
    assert tsne.marked_of(list("abcdef"), None) == ["a", "c", "e"]


def test_aspects_are_rows_of_the_same_points(inputs, tmp_path):
    plain, (height, _) = drawn(inputs, tmp_path)
    rows, (taller, _) = drawn(inputs, tmp_path, aspects=["invariance", "canonical_form", "isotropy"])
    assert rows == plain
    assert taller > 2 * height
    assert [(row["panel"], row["lang"]) for row in rows[:3]] == [("A", lang) for lang in LANGS]
    assert len(rows) == 2 * 27


def test_the_companion_stands_in_the_numbers_where_one_is_asked_for(inputs, tmp_path):
    plain, _ = drawn(inputs, tmp_path)
    rows, _ = drawn(inputs, tmp_path, companion="neighbour_rate")
    assert [{**row, "neighbour_rate": beside["neighbour_rate"]} for row, beside in zip(plain, rows, strict=True)] == rows
    assert "neighbour_rate" not in plain[0]


def test_perplexity_is_an_option_that_small_sets_bound(inputs, tmp_path, monkeypatch):
    import sklearn.manifold

    asked = []

    class Recorder:
        def __init__(self, **options):
            asked.append(options)

        def fit_transform(self, vectors):
            return vectors[:, :2]

    monkeypatch.setattr(sklearn.manifold, "TSNE", Recorder)
    drawn(inputs, tmp_path, perplexity=5)
    drawn(inputs, tmp_path)
    assert [options["perplexity"] for options in asked] == pytest.approx([5, 5, 26 / 3, 26 / 3])
    assert {(options["random_state"], options["init"], options["learning_rate"]) for options in asked} == {(0, "pca", "auto")}


def test_twenty_languages_have_twenty_colours():
    assert len(set(colours_of([str(number) for number in range(20)]).values())) == 20
    assert list(colours_of(["a", "b"]).values()) == list(PALETTE[:2])
