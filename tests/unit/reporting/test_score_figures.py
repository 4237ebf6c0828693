"""Bars and lines: the numbers beside the picture are those of the scores."""

import csv

import pytest

from crosslign.files import write_json
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures.bars import change, is_unseen
from crosslign.reporting.values import Cell


def score(folder, run, value, low=None, high=None):
    record = {
        "eval": "t",
        "subset": "de",
        "metric": "f1",
        "protocol": "",
        "direction": "",
        "value": value,
        "ci_low": low,
        "ci_high": high,
        "reason": "x",
    }
    write_json(folder / f"{run}.json", {"records": [record]})
    return f"{run}.json"


def cell(*files):
    return {"scores": list(files), "select": {"task": "t", "subset": "de", "metric": "f1", "protocol": "", "direction": ""}}


def numbers(kind, entry, panels, tmp_path):
    out = {form: tmp_path / f"figure.{form}" for form in ("png", "svg", "csv")}
    FIGURES.get(kind)({"title": "T", **entry}, {"panels": panels, "results": str(tmp_path)}, out)
    assert all(path.stat().st_size for path in out.values())
    with open(out["csv"], encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_bars_show_means_over_seeds_and_reasons(tmp_path):
    seeds = cell(score(tmp_path, "a1", 0.2), score(tmp_path, "a2", 0.4))
    panels = [{"label": "A", "cells": [seeds]}, {"label": "B", "cells": [{"reason": "no weights"}]}]
    first, second = numbers("bars", {"cells": [{"task": "t", "subset": "de", "metric": "f1"}]}, panels, tmp_path)
    assert float(first["value"]) == pytest.approx(0.3)
    assert float(first["std"]) == pytest.approx(0.2 / 2**0.5)
    assert (second["value"], second["reason"]) == ("", "no weights")


def test_lines_average_the_evaluations_of_each_place(tmp_path):
    panels = [
        {"label": "small", "cells": [cell(score(tmp_path, "a", 0.2)), cell(score(tmp_path, "b", 0.6))]},
        {"label": "large", "cells": [cell(score(tmp_path, "c", 0.5)), {"reason": "not run"}]},
    ]
    small, large = numbers("lines", {"x": [256, 409600], "x_label": "size", "cells": []}, panels, tmp_path)
    assert float(small["value"]) == pytest.approx(0.4)
    assert (large["x"], large["value"]) == ("409600", "")


def test_bars_against_a_base_show_changes_in_a_panel_a_base(tmp_path):
    under = {"label": "base", "cells": [cell(score(tmp_path, "b", 0.5, 0.4, 0.6)), {"reason": "no weights"}]}
    ours = [cell(score(tmp_path, "a1", 0.2), score(tmp_path, "a2", 0.4)), cell(score(tmp_path, "a", 0.7))]
    other = {"label": "other", "cells": [cell(score(tmp_path, "o", 0.1)), cell(score(tmp_path, "p", 0.1))]}
    panels = [{"label": "A", "cells": ours, "against": under}, {"label": "B", "cells": ours, "against": other}]
    entry = {"cells": [{"task": "t", "subset": "de", "metric": "f1"}, {"task": "u", "subset": "de-tr", "metric": "f1"}], "seen": ["de"]}
    first, second, third, _ = numbers("bars", entry, panels, tmp_path)
    assert (first["against"], third["against"]) == ("base", "other")
    assert (float(first["value"]), float(first["against_value"]), float(first["change"])) == pytest.approx((0.3, 0.5, -0.2))
    assert float(first["std"]) == pytest.approx(0.2 / 2**0.5)
    assert (second["value"], second["change"], second["reason"]) == ("0.7", "", "no weights")
    assert float(third["change"]) == pytest.approx(0.2)


def test_bars_with_places_show_a_panel_an_evaluation_and_a_colour_a_label(tmp_path):
    """Four systems: two labels at two places; the second has no score at the second place."""
    panels = [
        {"label": label, "cells": [cell(score(tmp_path, f"{label}{place}t", 0.1 * place)), found]}
        for label, place, found in (
            ("single", 1, cell(score(tmp_path, "a", 0.5))),
            ("multiple", 1, cell(score(tmp_path, "b", 0.6))),
            ("single", 2, cell(score(tmp_path, "c", 0.7))),
            ("multiple", 2, {"reason": "no weights"}),
        )
    ]
    cells = [{"label": "T", "task": "t", "subset": "de", "metric": "f1"}, {"label": "U", "task": "u", "subset": "de", "metric": "f1"}]
    entry = {"cells": cells, "places": ["four", "four", "six", "six"]}
    found = {(row["evaluation"], row["system"]): (row["value"], row["reason"]) for row in numbers("bars", entry, panels, tmp_path)}
    assert found == {
        ("T, four", "single"): ("0.1", ""),
        ("T, six", "single"): ("0.2", ""),
        ("T, four", "multiple"): ("0.1", ""),
        ("T, six", "multiple"): ("0.2", ""),
        ("U, four", "single"): ("0.5", ""),
        ("U, six", "single"): ("0.7", ""),
        ("U, four", "multiple"): ("0.6", ""),
        ("U, six", "multiple"): ("", "no weights"),
    }


def test_a_language_outside_the_training_data_is_marked():
    seen = ["en", "de", "zh"]
    assert [is_unseen(subset, seen) for subset in ("de", "de-en", "zh-en", "en-tr", "fr")] == [False, False, False, True, True]
    assert not is_unseen("fr", [])


def test_the_change_of_two_systems_with_seeds_has_the_deviation_of_both():
    found = change(Cell(ours=0.6, std=0.03), Cell(ours=0.5, std=0.04))
    assert (found.ours, found.std) == pytest.approx((0.1, 0.05))
