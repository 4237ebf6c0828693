"""Retrieval examples: ranks and cosines by hand, the sentence found as a note, and nothing made up where the pool ends."""

from __future__ import annotations

import numpy as np
import pytest

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError
from crosslign.tasks.score import read_scores, score, write_scores

TASK = {"scorer": "nearest_sentences", "texts": {"test": "pool"}, "main": {"metric": "cosine", "subset": "query1_rank1"}}
VECTORS = {"a dog": (1.0, 0.0), "no rain": (0.0, -2.0), "a cat": (3.0, 4.0), "a hound": (4.0, 3.0), "rain": (0.0, 1.0)}


def records(queries, pool, top):
    builder = EvaluationBuilder("pool")
    for number, text in enumerate(queries):
        builder.item(f"q{number}", "en", "query", "en", text)
    for number, text in enumerate(pool):
        builder.item(f"s{number}", "en", "candidate", "en", text)
    evaluation = builder.build()
    matrix = np.array([VECTORS[text] for text in evaluation.texts["text"].to_pylist()], dtype=np.float32)
    return score("t", {**TASK, "top": top}, {"test": matrix}, {"test": evaluation})


def test_ranks_cosines_and_sentences_without_copies_of_the_query():
    found = records(["a dog", "no rain"], ["a dog", "a cat", "rain", "a hound"], 2)
    assert [(r.subset, r.value, r.note) for r in found] == [
        ("query1_rank1", pytest.approx(0.8), "a hound"),
        ("query1_rank2", pytest.approx(0.6), "a cat"),
        ("query2_rank1", pytest.approx(0.0, abs=1e-6), "a dog"),
        ("query2_rank2", pytest.approx(-0.6), "a hound"),
    ]
    assert [r.subset for r in found if r.main] == ["query1_rank1"]


def test_several_copies_of_the_query_take_no_rank_away():
    found = records(["a dog"], ["a dog", "a dog", "a dog", "a cat", "a hound"], 2)
    assert [r.note for r in found] == ["a hound", "a cat"]


def test_a_small_pool_leaves_ranks_undefined():
    found = records(["a dog"], ["a dog", "a cat"], 2)
    assert [(r.value is None, r.reason) for r in found] == [(False, ""), (True, "the pool holds 1 other sentences")]


def test_no_queries_is_an_error():
    with pytest.raises(InputError, match=r"task 't': .*queries"):
        records([], ["a dog"], 1)


def test_a_note_is_in_the_file_only_where_there_is_one(tmp_path):
    found = records(["a dog"], ["a dog", "a cat"], 2)
    keys = ("run_id", "system", "seed", "task", "checkpoint", "readout", "profile", "checkpoint_sha", "pooling", "layer", "max_length")
    context = dict.fromkeys((*keys, "code_version", "data_manifest_sha"), "x")
    write_scores(tmp_path / "s.json", context, found)
    assert (tmp_path / "s.json").read_text(encoding="utf-8").count('"note"') == 1
    assert read_scores(tmp_path / "s.json")[1] == found
