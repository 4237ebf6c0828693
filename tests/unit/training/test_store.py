"""Tokenised examples: equal to tokenising on the spot, whatever the shape; made again when anything changed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from crosslign.errors import InputError
from crosslign.files import write_rows
from crosslign.training import store as module
from crosslign.training.store import Store


def test_batches_hold_columns_and_the_tokens_of_every_text(tiny_model, pairs_file, sentence_pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 7)  # several record batches
    store = Store.open(pairs_file, tmp_path / "s", tiny_model, 9)
    rows = np.array([19, 0, 7, 6, 13, 14])
    batch, lookup = store.batch(rows, 5)
    assert batch.step == 5
    assert batch.ids == [f"sentences:sentences.tsv:{row + 1}" for row in rows]
    assert batch.columns["b_text"] == [sentence_pairs[row][1] for row in rows]
    tokenizer = tiny_model.member("main").tokenizer
    for text in [*batch.columns["a_text"], *batch.columns["b_text"]]:
        assert lookup["main", text].tolist() == tokenizer(text, truncation=True, max_length=9).input_ids
    lengths = [max(len(tokenizer(t, truncation=True, max_length=9).input_ids) for t in pair) for pair in sentence_pairs]
    assert store.lengths.tolist() == lengths
    assert store.facts["rows"] == 20
    assert store.facts["texts"] == 40
    assert store.facts["truncated"] == sum(len(tokenizer(t).input_ids) > 9 for pair in sentence_pairs for t in pair)


def test_other_shapes_and_missing_second_sides(tiny_model, tmp_path):
    views = [[{"kind": "full", "lang": "de", "a_text": "Ja.", "b_text": None}], None]
    labelled = {
        "id": ["1", "2"],
        "a_text": ["Yes.", "No one."],
        "a_lang": ["en", "en"],
        "b_text": [None, "The soup."],
        "b_lang": [None, "en"],
    }
    write_rows(tmp_path / "l.parquet", pa.table({**labelled, "label": [[1.0], [0.0]], "views": views}), "labelled_examples")
    batch, lookup = Store.open(tmp_path / "l.parquet", tmp_path / "l", tiny_model, 9).batch(np.array([0, 1]), 0)
    assert {text for _, text in lookup} == {"Yes.", "Ja.", "No one.", "The soup."}
    assert batch.columns["b_text"] == [None, "The soup."]
    groups = {
        "id": ["1", "2"],
        "texts": [["a", "b", "c"], ["d"]],
        "langs": [["en"] * 3, ["de"]],
        "c_text": ["e", None],
        "c_lang": ["en", None],
    }
    write_rows(tmp_path / "g.parquet", pa.table(groups), "groups")
    store = Store.open(tmp_path / "g.parquet", tmp_path / "g", tiny_model, 9)
    assert {text for _, text in store.batch(np.array([1]), 0)[1]} == {"d"}
    assert {text for _, text in store.batch(np.array([0]), 0)[1]} == {"a", "b", "c", "e"}


def test_opened_again_only_while_nothing_changed(tiny_model, pairs_file, tmp_path, monkeypatch):
    made = []
    real = module._write
    monkeypatch.setattr(module, "_write", lambda *arguments: (made.append(1), real(*arguments)))
    for length, prefix in ((9, ""), (9, ""), (12, ""), (12, "query: "), (12, "query: ")):
        tiny_model.member("main").tokenizer("another call", truncation=True, max_length=3)
        Store.open(pairs_file, tmp_path / "s", tiny_model, length, prefix)
    assert len(made) == 3


def test_prefix_is_tokenised_with_the_text(tiny_model, pairs_file, tmp_path):
    store = Store.open(pairs_file, tmp_path / "s", tiny_model, 30, "the dog ")
    _, lookup = store.batch(np.array([12]), 0)
    assert lookup["main", "Yes."].tolist() == tiny_model.member("main").tokenizer("the dog Yes.").input_ids


def test_unusable_examples_are_refused(tiny_model, tmp_path):
    empty = pa.table({"id": pa.array([], pa.string()), "a_text": pa.array([], pa.string()), "a_lang": pa.array([], pa.string())})
    write_rows(tmp_path / "empty.parquet", empty, "pairs")
    with pytest.raises(InputError, match="empty"):
        Store.open(tmp_path / "empty.parquet", tmp_path / "s", tiny_model, 9)
    write_rows(tmp_path / "mono.parquet", pa.table({"id": ["1"], "lang": ["en"], "text": ["x"]}), "mono")
    with pytest.raises(InputError, match="'a_text' is missing"):
        Store.open(tmp_path / "mono.parquet", tmp_path / "s", tiny_model, 9)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="not a readable Parquet"):
        Store.open(tmp_path / "bad.parquet", tmp_path / "s", tiny_model, 9)
    assert not (tmp_path / "s").exists()
