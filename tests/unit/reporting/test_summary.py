"""What a run prints at its end."""

from __future__ import annotations

from crosslign.reporting.summary import summary


def test_the_summary_names_only_what_is_there(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("row,column,ours,mark\nours,BUCC,0.5,best\n", encoding="utf-8")
    text = summary("Mining (scale quick, reduced)", table, [("tables", tmp_path), ("report", tmp_path / "report.html")])
    assert "Mining (scale quick, reduced) (× 100; * marks the best of a column)" in text
    assert "50.0*" in text
    assert f"tables     {tmp_path}\n" in text
    assert "report" not in text
