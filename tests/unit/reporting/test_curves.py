"""Curves of losses of either sign lie inside their panels."""

import csv
import json

import numpy as np
import pytest

from crosslign.reporting.figures import FIGURES, curves


@pytest.mark.parametrize("loss", [[3.0, 1.0, 2.0], [-0.2, -0.9, -1.0], [0.5, -0.5], [0.0, 0.0]])
def test_every_loss_and_zero_lie_between_the_ends_of_the_axis(loss):
    low, high = curves._limits(np.array(loss))
    assert low < high
    assert low <= min(*loss, 0.0)
    assert high >= max(*loss, 0.0)


@pytest.mark.parametrize(
    ("term", "loss", "idle"),
    [
        ("infonce", [0.001, 0.0, 0.04, 0.0, 0.0, 0.0], True),  # one jump is no learning
        ("infonce", [1.0, 0.3, 0.0, 0.0, 0.0, 0.0], False),
        ("infonce", [0.0, 0.0, 1.0, 1.0, 1.0, 1.0], False),
        ("mse", [0.004, 0.003, 0.002, 0.001, 0.0, 0.0], False),
    ],
)
def test_a_ranking_whose_loss_is_zero_from_the_first_step_has_nothing_to_learn(term, loss, idle):
    assert curves._at_zero([{"loss": value, "terms": {term: {}}} for value in loss]) is idle


def test_panels_leave_few_places_empty():
    assert [curves._width(panels) for panels in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12)] == [1, 2, 3, 4, 3, 3, 4, 4, 3, 4]


def test_the_numbers_are_written_beside_the_picture(tmp_path):
    steps = [{"step": step, "loss": -step / 10, "learning_rate": 1e-5 * step} for step in (1, 2, 3)]
    (tmp_path / "curve.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    out = {form: tmp_path / f"figure.{form}" for form in ("png", "svg", "csv")}
    FIGURES.get("curves")({"title": "Falls"}, {"panels": [{"label": "MVA", "curve": str(tmp_path / "curve.jsonl")}]}, out)
    with open(out["csv"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows] == [-0.1, -0.2, -0.3]
    assert [row["system"] for row in rows] == ["MVA"] * 3
    assert out["png"].read_bytes().startswith(b"\x89PNG")
