"""The overview counts what the tables hold, paper by paper."""

from crosslign.files import write_json
from crosslign.reporting.overview import build_overview, coverage

FIGURE = {"task": "t", "subset": "de", "metric": "f1"}


def resolved(name, paper, title, cells):
    columns = [{"label": "x", "task": "t", "published": FIGURE}, {"label": "y", "task": "t"}]
    rows = [{"label": label, **({"published": label} if name == "one" else {})} for label in cells]
    return {
        "id": name,
        "title": title,
        "paper": paper,
        "columns": columns,
        "rows": rows,
        "cells": list(cells.values()),
        "scale": "quick",
        "stand_in": True,
        "footnotes": [],
    }


def test_settings_count_as_filled(tmp_path):
    table = resolved("two", "q", "Two", {"A": [{"text": "15"}, {"reason": "not run"}]})
    assert coverage(table, tmp_path, tmp_path)["filled"] == 1


def test_cells_are_counted_by_paper_and_linked(tmp_path):
    record = {"eval": "t", "subset": "de", "metric": "f1", "protocol": "", "direction": "", "value": 0.5, "reason": ""}
    write_json(tmp_path / "s.json", {"records": [record]})
    write_json(tmp_path / "high.json", {"records": [{**record, "value": 0.8}]})
    cell = {"scores": ["s.json"], "select": {"task": "t", "subset": "de", "metric": "f1", "protocol": "", "direction": ""}}
    none = {"reason": "not run"}
    head = "group,model,task,subset,metric,value,direction\n"
    (tmp_path / "one.csv").write_text(f"{head},A,t,de,f1,49.0,higher\n,B,t,de,f1,51.0,higher\n", encoding="utf-8")
    tables = [
        resolved("one", "p", "One <b>", {"A": [cell, cell], "B": [{**cell, "scores": ["high.json"]}, none]}),
        resolved("two", "q", "Two", {"A": [none, none]}),
    ]
    recipe = {"tables": tables, "figures": [{"id": "f", "title": "F", "paper": "p"}], "scale": "quick", "stand_in": True}
    out = {form: tmp_path / f"overview.{form}" for form in ("html", "md")}
    assert build_overview(recipe, tmp_path, tmp_path, out) == {"tables": 2, "figures": 1, "cells": 6, "filled": 3}
    page, text = (out[form].read_text(encoding="utf-8") for form in ("html", "md"))
    assert "3 of 4 cells have a value of ours, 2 of them beside a published one." in page
    assert "0 of 2 cells have a value of ours." in page
    assert '<p class="headline">x: 50.0 for A, 80.0 for B.</p>' in page
    assert page.count('class="headline"') == 1
    assert '<img src="figures/f.png"' in page
    assert "One &lt;b&gt;" in page
    assert '<a href="tables/one.html">' in page
    assert "the scores mean nothing" in page
    assert "- [F](figures/f.svg)" in text
    assert "| [Two](tables/two.md) | 2 | 0 | 0 | 0 |" in text
