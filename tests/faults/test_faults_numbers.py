"""Numbers that cannot be, gold that leaks, text that attacks its reader: caught where they are born."""

from __future__ import annotations

import csv
import json
import logging
import re
import shutil
import subprocess
import sys
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from mini_project import Mini
from project_copy import ROOT

from crosslign.cli.main import main
from crosslign.config.cells import resolve_table
from crosslign.config.load import load_project
from crosslign.console import printable
from crosslign.corpora.decontamination import Decontamination
from crosslign.errors import InputError
from crosslign.files import write_json, write_rows
from crosslign.files.lineage import Lineage, lineage_path
from crosslign.files.rows import SCHEMAS
from crosslign.mining.knn import neighbours
from crosslign.paths import CATALOG
from crosslign.provenance.verify import verify
from crosslign.reporting.published import read_published
from crosslign.tasks.records import Record, find_record
from crosslign.tasks.score import HEAD, IN_EACH_RECORD, write_scores

CONTEXT = dict.fromkeys((*HEAD, *IN_EACH_RECORD), "x")


def decontaminated(table, evaluations):
    cleaner = Decontamination(evaluations)
    return cleaner.clean(table), cleaner.counts


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN"), (np.inf, "NaN"), (0.0, "zero")],
)
@pytest.mark.parametrize("side", [0, 1])
def test_f22_vectors_without_direction_are_refused_with_their_row(value, message, side):
    sides = [np.random.default_rng(n).normal(size=(50, 8)).astype(np.float32) for n in range(2)]
    sides[side][17] = value
    with pytest.raises(InputError, match=f"row 17.*{message}"):
        neighbours(*sides, 4)


def test_f22_unequal_dimensions_are_refused():
    with pytest.raises(InputError, match=r"sources and targets: .* 8 and 9 "):
        neighbours(np.ones((3, 8), np.float32), np.ones((3, 9), np.float32), 1)


GOLD = "The old café bridge, built in 1912, was closed on Friday."
DISGUISES = {
    "as it stands": GOLD,
    "in capitals": GOLD.upper(),
    "with spaces": "  The old café  bridge,\u00a0built in 1912,\twas closed on Friday . ",
    "without punctuation": "The old café bridge built in 1912 was closed on Friday",
    "in full width": "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in GOLD),
    "with zero-width characters": GOLD.replace("bridge", "bri\u200bdge"),
    "decomposed": unicodedata.normalize("NFD", GOLD),
}


@pytest.mark.parametrize("side", ["a_text", "b_text"])
@pytest.mark.parametrize("name", DISGUISES)
def test_f33_gold_in_disguise_is_found_on_either_side(tmp_path, name, side):
    row = {"a_text": "Another sentence altogether.", "b_text": "Ein ganz anderer Satz.", side: DISGUISES[name]}
    other = {"a_text": "This one is kept.", "b_text": "Dieser bleibt."}
    table = pa.Table.from_pylist(
        [{"id": str(n), "rows": [str(n)], "a_lang": "en", "b_lang": "de", **texts} for n, texts in enumerate((row, other))],
        schema=SCHEMAS["pairs"],
    )
    gold = pa.table({"text_id": ["g"], "lang": ["en"], "text": [GOLD]})
    write_rows(tmp_path / "gold.parquet", gold, "texts")
    kept, counts = decontaminated(table, {"gold": tmp_path / "gold.parquet"})
    assert kept["id"].to_pylist() == ["1"]
    assert "1" in json.dumps(counts)


def test_f33_a_row_whose_training_text_was_not_searched_says_so(tmp_path):
    mini = Mini(tmp_path / "project")
    notes = [note["text"] for note in resolve_table(load_project(mini.folder), "faults")["footnotes"]]
    assert not [note for note in notes if "not searched" in note]
    mini.edit("config/papers/faults.yaml", ", decontaminate: [sts_written]", "")
    resolved = resolve_table(load_project(mini.folder), "faults")
    (note,) = [note for note in resolved["footnotes"] if "not searched" in note["text"]]
    assert resolved["rows"][note["at"]["number"]]["label"] == "F-A"
    assert "sts_written" in note["text"]


@pytest.mark.parametrize("typo", ["0.931", "9310", "-93.1", "nan", "93,1"])
def test_f35_a_typo_in_a_published_figure_is_refused(tmp_path, typo):
    source = CATALOG / "resources" / "published" / "msimcse_table3.csv"
    with open(source, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    place = next(n for n, row in enumerate(rows) if row["direction"])
    (tmp_path / "t.csv").write_bytes(source.read_bytes())
    read_published(tmp_path, "t")
    rows[place]["value"] = typo
    rows[place]["metric"] = rows[place]["metric"] if typo != "-93.1" else "f1"
    with open(tmp_path / "t.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(InputError, match=rf"t\.csv:{place + 2}: "):
        read_published(tmp_path, "t")


def test_f35_all_figures_of_the_papers_are_in_range():
    tables = {path.stem: read_published(path.parent, path.stem) for path in (CATALOG / "resources" / "published").glob("*_table*.csv")}
    assert {name.rsplit("_", 1)[0] for name in tables} == {"msimcse", "moco_bert", "scl", "mpcl", "emma_x"}
    assert not [name for name, table in tables.items() if not table._figures]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("f1", 93.1),
        ("macro_f1", -0.1),
        ("accuracy", 1.5),
        ("spearman", -1.2),
        ("map@20", float("nan")),
        ("map_at_20", 1.1),
        ("cosine", -1.1),
        ("kl_d", float("inf")),
    ],
)
def test_f35_a_score_that_cannot_be_is_not_written(tmp_path, metric, value):
    with pytest.raises(InputError, match=rf"{re.escape(metric)} .*{re.escape(str(value))}"):
        write_scores(tmp_path / "s.json", CONTEXT, [Record("t", "s", metric, value, 1)])
    assert not list(tmp_path.iterdir())
    write_scores(tmp_path / "s.json", CONTEXT, [Record("t", "s", metric, None, 1, status="undefined", reason="no items")])


RECORD = {"eval": "t", "subset": "de", "metric": "f1", "protocol": "", "direction": "", "n_items": 5}
WRONG = {
    "a truth value": ({"value": True}, r"f1 .*True"),
    "a text": ({"value": "0.5"}, r"f1 .*'0\.5'"),
    "a list": ({"value": []}, r"f1 .*\[\]"),
    "NaN": ({"value": float("nan")}, r"f1 .*nan"),
    "beyond its bounds": ({"value": 93.1}, r"f1 .*93\.1; .* 0 and 1\b"),
    "beyond any number": ({"value": 10**400}, r"f1 .*1000"),
    "thousands of digits": ({"value": "@"}, "JSON"),
    "an interval of text": ({"value": 0.5, "ci_low": "0.4"}, r"ci_low .*'0\.4'"),
    "an endless interval": ({"value": 0.5, "ci_high": float("inf")}, r"ci_high .*inf"),
    "an interval from its end": ({"value": 0.5, "ci_low": 0.0, "ci_high": -0.1}, r"ci_high .*-0\.1; .* 0 and inf"),
    "items below zero": ({"value": 0.5, "n_items": -5}, r"n_items .*-5; .* 0 "),
    "no value": ({}, "score file"),
    "no record": (None, "score file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_f35_a_score_file_that_cannot_be_is_refused_with_its_name(tmp_path, name):
    change, said = WRONG[name]
    content = {"records": [{**RECORD, **change}] if change is not None else [[1]]}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(content).replace('"@"', "1" * 5000), encoding="utf-8")
    select = {"task": "t", "subset": "de", "metric": "f1", "protocol": "", "direction": ""}
    with pytest.raises(InputError, match=rf"s\.json.*{said}"):
        find_record(path, select)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, "1" * 5000, '{"records": 7}', "\udcff"])
def test_f35_what_is_no_score_file_at_all_is_refused(tmp_path, text):
    (tmp_path / "s.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"s\.json"):
        find_record(tmp_path / "s.json", {"task": "t"})
    (tmp_path / "s.json").unlink()
    (tmp_path / "s.json").mkdir()
    with pytest.raises(InputError, match=r"s\.json: .*Is a directory"):
        find_record(tmp_path / "s.json", {"task": "t"})


def test_f34_ties_repeats_and_empty_gold_give_the_scores_of_the_official_program():
    """The last cut of a ranked list, all candidates right, none right, equal scores: the best F1 of a list written as a loop."""
    from crosslign.mining.threshold import best_threshold

    def slow(scores, right, gold):
        order = sorted(range(len(scores)), key=lambda i: -scores[i])
        best, hits = 0.0, 0
        for n, i in enumerate(order, start=1):
            hits += right[i]
            if n == len(order) or scores[order[n]] < scores[i]:  # a threshold cannot part equal scores
                best = max(best, 2 * hits / (n + gold))
        return best

    draw = np.random.default_rng(0)
    cases = [([0.5] * 6, [1, 0, 1, 0, 1, 1], 5), ([0.9, 0.8], [1, 1], 2), ([0.9, 0.8], [0, 0], 2), ([0.7], [1], 1), ([0.3, 0.9], [1, 0], 1)]
    cases += [(list(draw.integers(0, 4, n) / 4), list(draw.integers(0, 2, n)), n + 1) for n in range(1, 40)]
    for scores, right, gold in cases:
        found = best_threshold(np.array(scores, np.float64), np.array(right, bool), gold)
        assert found.f1 == pytest.approx(slow(scores, right, gold)), (scores, right, gold)


def test_f36_results_of_another_version_are_refused_with_advice(tmp_path, capsys):
    shutil.copytree(ROOT / "tests" / "faults" / "other_version", tmp_path / "results")
    job = Lineage("score", {}, [tmp_path / "results" / "corpora" / "c.parquet"], tmp_path / "results")
    with pytest.raises(InputError, match=r"version.* format 0, .* format 1\. .*`results:`"):
        job.inherit()
    assert main(["verify", str(tmp_path / "results")]) == 1
    assert "another version wrote it" in capsys.readouterr().out


HOSTILE = "<script>alert(1)</script> \x1b]0;owned\x07\x1b[2J\u202eevil | `x` & ${HOME}"


def test_f37_hostile_text_is_inert_on_the_terminal_and_in_logs(tmp_path, capsys):
    from crosslign.jobs.frame import start_log
    from crosslign.reporting.summary import table_as_text

    assert "\x1b" not in str(InputError(HOSTILE, where=HOSTILE, why=HOSTILE))
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        start_log(tmp_path / "a.log", "rule")
        logging.getLogger("x").warning("read %s", HOSTILE)
    finally:
        root.handlers[:], root.level = before[0], before[1]
    shown = capsys.readouterr().err + (tmp_path / "a.log").read_text(encoding="utf-8")
    assert "alert(1)" in shown
    (tmp_path / "t.csv").write_text(f'table,row,column,ours,mark\nt,"{HOSTILE}",x,0.5,\n', encoding="utf-8")
    shown += table_as_text(tmp_path / "t.csv")
    assert printable(shown) == shown


def test_f37_no_command_prints_what_a_terminal_obeys(monkeypatch, capsys):
    from crosslign.cli.commands.verify import Verify

    def run(self, args):
        print(HOSTILE)
        print(HOSTILE, file=sys.stderr)
        sys.stdout.writelines([HOSTILE])
        raise ValueError(HOSTILE)

    monkeypatch.setattr(Verify, "run", run)
    assert main(["verify", "results"]) == 1
    shown = capsys.readouterr()
    assert (shown.out.count("alert(1)"), shown.err.count("ValueError: <script>alert(1)")) == (2, 1)
    assert printable(shown.out + shown.err) == shown.out + shown.err


def test_f37_an_unexpected_error_of_a_job_is_shown_without_codes(tmp_path):
    code = (
        "from crosslign.jobs.frame import execute\n"
        f"def stage(job): raise ValueError({HOSTILE!r})\n"
        f"execute(stage, inputs=[], outputs=[], params=[('root', {str(tmp_path)!r})], threads=1, log={str(tmp_path / 'a.log')!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    shown = done.stdout + done.stderr + (tmp_path / "a.log").read_text(encoding="utf-8")
    assert shown.count("ValueError: <script>alert(1)") == 2
    assert printable(shown) == shown


def test_f37_the_scheduler_s_log_is_shown_without_codes(tmp_path):
    from crosslign.jobs.failures import FailuresHandler

    (tmp_path / "17.log").write_text(HOSTILE, encoding="utf-8")
    handler = FailuresHandler()
    fields = {"rule_name": "score", "log": [str(tmp_path / "no.log"), str(tmp_path / "17.log")]}
    handler.emit(logging.makeLogRecord({"event": "job_error", "jobid": 4, **fields}))
    assert "alert(1)" in handler.text()
    assert printable(handler.text()) == handler.text()


def test_f37_hostile_text_is_escaped_in_the_report():
    from crosslign.reporting.markup import templates

    assert templates().autoescape("report.html") is True
    page = (ROOT / "src/crosslign/reporting/templates").glob("*.html")
    assert not [path.name for path in page if "|safe" in path.read_text(encoding="utf-8").replace(" ", "")]


SELECT = {"task": "t", "metric": "f1", "protocol": "", "direction": ""}
TABLE = {
    "columns": [{"label": "de"}, {"label": "fr"}, {"label": "mean", "mean_of": ["de", "fr"]}],
    "cells": [[*({"scores": ["scores/s.json"], "select": {**SELECT, "subset": s}} for s in ("de", "fr")), {"mean_of": ["de", "fr"]}]],
}
"""A table of one row, as its lineage names it."""


@pytest.fixture
def results(tmp_path):
    """A table with an average, its score and its corpus, with lineage."""
    record = {"eval": "t", "metric": "f1", "protocol": "", "direction": "", "run_id": "A-s1", "n_items": 5}
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "c.parquet").write_text("rows")
    write_json(tmp_path / "scores/s.json", {"records": [{**record, "subset": s, "value": v} for s, v in (("de", 0.2), ("fr", 0.5))]})
    rows = [("de", "0.2", "scores/s.json", "t/de/f1//"), ("fr", "0.5", "scores/s.json", "t/fr/f1//"), ("mean", "0.35", "", "")]
    (tmp_path / "tables").mkdir()
    text = "row,column,ours,score_file,record\n" + "".join(f"A,{','.join(row)}\n" for row in rows)
    (tmp_path / "tables/t.csv").write_text(text, encoding="utf-8")
    for path, recipe, inputs in (
        ("corpora/c.parquet", {}, []),
        ("scores/s.json", {}, ["corpora/c.parquet"]),
        ("tables/t.csv", TABLE, ["scores/s.json"]),
    ):
        Lineage("rule", recipe, [tmp_path / name for name in inputs], tmp_path).write(tmp_path / path, "kind")
    return tmp_path


def test_f42_a_missing_part_of_a_table_is_named_with_the_target_to_run(results):
    (results / "scores" / "s.json").unlink()
    with pytest.raises(InputError, match=r"s\.json: .*missing\. .*snakemake --cores all -- \S+/scores/s\.json"):
        find_record(results / "scores" / "s.json", {"task": "t"})
    text, whole = verify(results)
    assert not whole
    assert "A / de: scores/s.json is missing" in text


@pytest.mark.parametrize("printed", [{}, {"gaps": "mark"}])
def test_f42_deleted_records_are_refused_with_the_command_or_marked_when_asked(results, printed):
    from crosslign.reporting.layout import lay_out

    score = results / "scores" / "s.json"
    write_json(score, {"records": [record for record in json.loads(score.read_text())["records"] if record["subset"] != "fr"]})
    rows = [{"label": "A"}]
    resolved = {**TABLE, "id": "t", "title": "T", "scale": "paper", "stand_in": False, "rows": rows, "footnotes": [], "print": printed}
    if not printed:
        with pytest.raises(InputError, match=r"s\.json: 0 .*snakemake --cores all --forcerun (\S+/scores/s\.json) -- \1"):
            lay_out(resolved, results, results)
        return
    table = lay_out(resolved, results, results)
    assert [cell.ours for cell in table.rows[0].cells] == ["–" if name != "de" else "20.0" for name in ("de", "fr", "mean")]
    notes = [text for _, text in table.footnotes]
    assert any(text.startswith("gap: 0 records fit") and text.endswith("in s.json") for text in notes)
    assert any(text.startswith("no value in fr: gap") for text in notes)


def test_f42_verify_says_whole_stale_missing_and_touched_on_one_screen(results):
    text, whole = verify(results)
    assert whole, text
    table = results / "tables" / "t.csv"
    table.write_text(table.read_text().replace("0.35", "0.36"))
    Lineage("rule", TABLE, [results / "scores/s.json"], results).write(table, "kind")
    assert "A / mean: the table has 0.36, the scores give 0.35" in verify(results)[0]
    (results / "corpora" / "c.parquet").write_text("other rows")
    text, _ = verify(results)
    assert "touched by hand: corpora/c.parquet" in text
    assert "stale: scores/s.json (corpora/c.parquet has changed since)" in text
    (results / "corpora" / "c.parquet").unlink()
    lineage_path(results / "corpora" / "c.parquet").unlink()
    assert "missing: corpora/c.parquet (scores/s.json was made from it)" in verify(results)[0]
    assert len(verify(results)[0].splitlines()) < 40


def test_f42_what_is_stale_or_touched_is_taken_away_for_the_next_run(results, capsys):
    (results / "corpora" / "c.parquet").write_text("other rows")
    assert main(["verify", str(results), "--discard"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "discarded: corpora/c.parquet",
        "discarded: scores/s.json",
        "discarded: tables/t.csv",
    ]
    assert not (results / "scores" / "s.json").exists()
    assert (results / ".discarded" / "1" / "corpora" / "c.parquet").read_text() == "other rows"
    with pytest.raises(InputError, match=r"`snakemake --cores all`.*results/laptop"):
        verify(results)
