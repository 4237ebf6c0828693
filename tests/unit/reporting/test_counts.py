"""Tables of counts: records from lineage, added up over corpora, beside what was printed."""

from crosslign.files import read_json
from crosslign.files.lineage import Lineage
from crosslign.provenance.cell_states import cells
from crosslign.reporting.counts import write_counts
from crosslign.reporting.layout import lay_out
from crosslign.reporting.published import read_published

HEAD = "paper,table,group,model,model_label,task,subset,metric,value,std,direction,note\n"
CORPUS = {
    "read": 100,
    "read_bytes": 2**30,
    "filters": [{"filter": "length", "before": 100, "after": 90}, {"filter": "exact_duplicate", "before": 90, "after": 60}],
    "rows": 50,
    "per_language": {"de": 50, "en": 50},
    "groups": 20,
    "labels": {"rows": {"news": 30, "law": 20}, "groups": {"news": 15, "law": 5}},
}
EVALUATION = {
    "rows": 7,
    "per_language": {"de": 3, "en": 4},
    "words": {"de": 12, "en": 10},
    "sizes": {"gold_links": {"de-en": 3, "fr-en": 9}},
}


def records(tmp_path, **counts):
    """Return the value of every record by (id, metric, subset)."""
    rows = {}
    for name, content in counts.items():
        (tmp_path / f"{name}.parquet").touch()
        Lineage("rule", {}, [], tmp_path, counts=content).write(tmp_path / f"{name}.parquet", "corpus")
        rows[name] = tmp_path / f"{name}.parquet"
    out = tmp_path / "counts" / "t.json"
    assert write_counts({"corpora": rows}, out) > 0
    return {(r["protocol"], r["metric"], r["subset"]): r["value"] for r in read_json(out)["records"]}


def test_counts_of_a_corpus_are_those_before_and_after_filters_and_sampling(tmp_path):
    found = records(tmp_path, c=CORPUS)
    assert [found["c", metric, "all"] for metric in ("read", "kept", "rows", "groups", "languages")] == [100, 60, 50, 20, 2]
    assert found["c", "rows_per_group", "all"] == 2.5
    assert (found["c", "rows", "law"], found["c", "groups", "news"]) == (20, 15)


def test_what_was_read_is_what_was_published(tmp_path):
    """Lines that a reader left out stood in the files."""
    found = records(tmp_path, c={**CORPUS, "left_out": {"empty": 4, "broken": 1}})
    assert [found["c", metric, "all"] for metric in ("read", "kept", "rows")] == [105, 60, 50]


def test_what_was_counted_in_beginnings_is_an_estimate_of_the_whole(tmp_path):
    head = {"head": {"bytes": 100, "of": 250}}
    found = records(tmp_path, c={**CORPUS, **head})
    assert [found["c", metric, "all"] for metric in ("read", "kept", "rows", "groups")] == [250, 150, 50, 20]
    resolved = counting(cell("c"), cell("c", metric="rows"))
    printed = lay_out(resolved, tmp_path, tmp_path).rows[0].cells
    assert [one.ours for one in printed] == ["≈ 250", "50"]
    assert [bool(one.letters) for one in printed] == [True, False]


def test_a_sum_of_counts_of_which_one_is_an_estimate_is_one(tmp_path):
    records(tmp_path, c={**CORPUS, "head": {"bytes": 100, "of": 250}}, d=CORPUS)
    printed = lay_out(counting(cell("c", "d")), tmp_path, tmp_path).rows[0].cells[0]
    assert printed.ours == "≈ 350"
    assert printed.letters


def test_counts_of_an_evaluation_set_go_by_subset(tmp_path):
    found = records(tmp_path, e=EVALUATION)
    assert [found["e", "gold_links", subset] for subset in ("de-en", "least", "most", "subsets")] == [3, 3, 9, 2]
    assert found["e", "words_per_sentence", "de"] == 4.0


def cell(*names, metric="read"):
    parts = [
        {
            "scores": ["counts/t.json"],
            "select": {"task": "counts", "metric": metric, "subset": "all", "direction": "corpora", "protocol": name},
        }
        for name in names
    ]
    return parts[0] if len(parts) == 1 else {"parts": parts, "total": True}


def counting(*cells):
    """Return a table of one row of counts."""
    columns = [{"label": str(number), "count": "read", "of": "x"} for number in range(len(cells))]
    resolved = {"id": "t", "title": "T", "scale": "paper", "stand_in": False, "rows": [{"label": "A"}], "columns": columns, "footnotes": []}
    return {**resolved, "print": {"decimals": 0, "scale_by": 1}, "cells": [list(cells)]}


def test_a_table_prints_counts_beside_what_was_printed(tmp_path):
    records(tmp_path, c=CORPUS, d={**CORPUS, "read": 11})
    (tmp_path / "t.csv").write_text(HEAD + "p,7,x,m,,corpus,A,sentences,46k,,,\np,7,x,m,,corpus,B,sentences,1.5,,,\n", encoding="utf-8")
    rows = [{"label": name, "published": {"model": "m", "subset": name}} for name in "AB"]
    columns = [{"label": "Sentences", "count": "read", "of": "x", "published": {"task": "corpus", "metric": "sentences"}}]
    resolved = {"id": "t", "title": "T", "scale": "paper", "stand_in": False, "rows": rows, "columns": columns, "footnotes": []}
    resolved |= {"print": {"decimals": 1, "scale_by": 1}, "cells": [[cell("c")], [cell("c", "d")]]}
    printed = [row.cells[0] for row in lay_out(resolved, tmp_path, tmp_path).rows]
    assert [(c.ours, c.published, c.best) for c in printed] == [("100.0", "46k", False), ("111.0", "1.5", False)]


def test_a_count_is_derived_again_by_verify(tmp_path):
    records(tmp_path, c=CORPUS)
    (tmp_path / "tables").mkdir()
    line = "t,A,Sentences,{},,1,,,,,,counts/t.json,counts/all/read/c/corpora,\n"
    header = "table,row,column,ours,ours_std,n_seeds,published,ci_low,ci_high,mark,footnotes,score_file,record,p_value\n"
    for ours, state in ((100, "whole"), (101, "stale")):
        (tmp_path / "tables" / "t.csv").write_text(header + line.format(ours), encoding="utf-8")
        recipe = {"columns": [{"label": "Sentences"}], "cells": [[cell("c")]]}
        Lineage("make_table", recipe, [], tmp_path).write(tmp_path / "tables" / "t.csv", "table")
        assert [finding.state for finding in cells(tmp_path)] == [state]


def test_a_row_names_its_task_and_no_model(tmp_path):
    (tmp_path / "t.csv").write_text(HEAD + 'p,9,G,,XNLI,xnli,test,examples,"738-750",,,\n', encoding="utf-8")
    figures = read_published(tmp_path, "t")
    row, column = {"group": "G", "published": {"task": "xnli"}}, {"published": {"subset": "test", "metric": "examples"}}
    assert (figures.at(row, column).number, figures.at(row, column).value) == (None, "738-750")
    assert figures.at({"group": "G"}, column).value == ""
