"""Score files: fields, sorted, equal bytes; and row counts that must agree."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from build_sets import build

from crosslign.errors import InputError
from crosslign.tasks import SCORERS, Record
from crosslign.tasks.score import read_scores, score_run, write_scores

CONTEXT = {
    "run_id": "MS-E-s42", "system": "MS-E", "seed": 42, "checkpoint": "last", "readout": "cls_t32", "profile": "quick",
    "checkpoint_sha": "ab", "pooling": "cls_before_mlp", "layer": -1, "max_length": 32, "code_version": "cd", "data_manifest_sha": "ef",
    "precision": "bf16", "score_change": "STS17 at most 0.04",
}  # fmt: skip
F3 = [
    "run_id",
    "checkpoint_sha",
    "eval",
    "subset",
    "direction",
    "protocol",
    "metric",
    "value",
    "n_items",
    "threshold",
    "pooling",
    "layer",
    "max_length",
    "precision",
    "score_change",
    "seed",
    "profile",
    "code_version",
    "data_manifest_sha",
    "main",
    "threshold_from",
    "ci_low",
    "ci_high",
    "status",
    "reason",
]
RECORDS = [
    Record("bucc", "fr-en", "f1", 0.1 + 0.2, 10, protocol="xtreme", threshold=1.06, threshold_from="dev", main=True),
    Record("bucc", "de-en", "f1", None, 0, protocol="xtreme", status="undefined", reason="no gold pairs"),
    Record("bucc", "de-en", "accuracy", 1.0, 7, protocol="mteb", ci_low=0.9, ci_high=1.0),
]


def test_fields_order_and_equal_bytes(tmp_path):
    context = {**CONTEXT, "task": "bucc"}
    write_scores(tmp_path / "a.json", context, RECORDS)
    write_scores(tmp_path / "b.json", dict(reversed(context.items())), RECORDS[::-1])
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    content = json.loads((tmp_path / "a.json").read_text())
    assert set(content) == {"run_id", "system", "seed", "task", "checkpoint", "readout", "profile", "records"}
    assert [(r["subset"], r["metric"]) for r in content["records"]] == [("de-en", "accuracy"), ("de-en", "f1"), ("fr-en", "f1")]
    assert all(sorted(r) == sorted(F3) for r in content["records"])
    assert {(r["precision"], r["score_change"]) for r in content["records"]} == {("bf16", "STS17 at most 0.04")}
    assert content["records"][1]["value"] is None
    assert content["records"][2]["value"] == 0.30000000000000004


def test_what_is_written_is_read(tmp_path):
    context = {**CONTEXT, "task": "bucc"}
    write_scores(tmp_path / "a.json", context, RECORDS)
    read, records = read_scores(tmp_path / "a.json")
    assert read == context
    assert sorted(records, key=str) == sorted(RECORDS, key=str)
    assert replace(records[0], value=0.5) != records[0]


def test_files_that_are_no_score_files(tmp_path):
    with pytest.raises(InputError, match="missing"):
        read_scores(tmp_path / "none.json")
    (tmp_path / "a.json").write_text('{"records": []}')
    with pytest.raises(InputError, match=r"a\.json: .*'run_id'"):
        read_scores(tmp_path / "a.json")


@pytest.fixture
def files(tmp_path):
    names = ["a", "b", "c"]
    evaluation = build({"de": (names, names, [(i, i) for i in range(3)])})
    paths = {part: tmp_path / f"{part}.parquet" for part in ("texts", "items", "gold")}
    evaluation.write(paths)
    np.save(tmp_path / "test.npy", np.vstack([np.eye(3), np.eye(3)]).astype(np.float32))
    return {"test": tmp_path / "test.npy"}, {"test": paths}


TASK = {
    "scorer": "retrieval",
    "texts": {"test": "tiny"},
    "output": "vectors",
    "main": {"metric": "accuracy", "subset": "de", "direction": "mean"},
    "averages": {},
    "footnote": "x",
}


def test_score_run_scores_files(files, tmp_path):
    matrices, sets = files
    records = score_run("tatoeba", TASK, matrices, sets, tmp_path / "out.json", CONTEXT)
    (main,) = [r for r in records if r.main]
    assert (main.value, main.n_items) == (1.0, 3)
    context, read = read_scores(tmp_path / "out.json")
    assert context["task"] == "tatoeba"
    assert read == records


def test_scores_of_a_checkpoint_that_training_marked_say_so(files, tmp_path):
    matrices, sets = files
    why = "embeddings have collapsed: mean cosine 0.9990 (since step 120)"
    records = score_run("tatoeba", TASK, matrices, sets, tmp_path / "out.json", CONTEXT | {"collapsed": why})
    assert {(record.status, record.reason) for record in records} == {("collapsed", why)}
    assert [record.value for record in records if record.main] == [1.0]
    assert read_scores(tmp_path / "out.json")[1] == records


def test_score_run_names_both_counts(files, tmp_path):
    matrices, sets = files
    np.save(matrices["test"], np.eye(5, dtype=np.float32))
    with pytest.raises(InputError, match=r"test\.npy.* 5 rows.*'test' .* 6 "):
        score_run("tatoeba", TASK, matrices, sets, tmp_path / "out.json", CONTEXT)
    assert not (tmp_path / "out.json").exists()


def test_unknown_scorer(files, tmp_path):
    matrices, sets = files
    with pytest.raises(InputError, match=r"task 'tatoeba': .*'retreival'.*'retrieval'"):
        score_run("tatoeba", {**TASK, "scorer": "retreival"}, matrices, sets, tmp_path / "out.json", CONTEXT)


def test_scorers_are_called_as_their_modules():
    assert {SCORERS.get(name).__module__.rsplit(".", 1)[-1] for name in SCORERS.names()} == set(SCORERS.names())
