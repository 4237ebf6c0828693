"""The overview counts what the tables' own CSVs hold."""

from crosslign.reporting.overview import build_overview

HEAD = "table,row,column,ours,ours_std,n_seeds,published,ci_low,ci_high,mark,footnotes,score_file,record\n"


def test_cells_are_counted_by_paper_and_linked(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text(HEAD + "one,A,x,0.5,,1,49.0,,,,,,\none,A,y,,,,51.0,,,,,,\none,B,x,0.4,,1,,,,,,,\n")
    two.write_text(HEAD + "two,A,x,,,,,,,,,,\n")
    tables = [{"id": "one", "title": "One <b>", "paper": "p"}, {"id": "two", "title": "Two", "paper": "q"}]
    recipe = {"tables": tables, "figures": [{"id": "f", "title": "F", "paper": "p"}], "scale": "quick", "stand_in": True}
    out = {form: tmp_path / f"overview.{form}" for form in ("html", "md")}
    assert build_overview(recipe, [one, two], out) == {"tables": 2, "figures": 1, "cells": 4, "filled": 2}
    page, text = (out[form].read_text(encoding="utf-8") for form in ("html", "md"))
    assert "2 of 3 cells have a value of ours, 1 of them beside a published one." in page
    assert "0 of 1 cells have a value of ours" in page
    assert "One &lt;b&gt;" in page
    assert '<a href="tables/one.html">' in page
    assert "the scores mean nothing" in page
    assert "- [F](figures/f.svg)" in text
    assert "| [Two](tables/two.md) | 1 | 0 | 0 | 0 |" in text
