"""Tokenised examples: equal to tokenising on the spot, whatever the shape; a killed process leaves finished shards to the next one."""

from __future__ import annotations

import os
import signal

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosslign.config.entry_keys import PAIR_VIEWS
from crosslign.encoders.model import Model
from crosslign.errors import InputError, ResourceError
from crosslign.files import write_rows
from crosslign.files.rows import ParquetRows
from crosslign.training import tokenised
from crosslign.training.tokenised import Store, tokenise_examples


@pytest.fixture
def made(tiny_model, tmp_path):
    """Tokenise a training set and open it."""

    def make(path, name="s", max_length=9, prefix="", forms=("sentences", "views"), processes=1):
        settings = {"max_length": max_length, "prefix": prefix, "forms": list(forms)}
        tokenise_examples(path, tmp_path / name, tmp_path / f"{name}.work", tiny_model, settings, processes)
        return Store(tmp_path / name, tiny_model)

    return make


@pytest.fixture
def shards(monkeypatch):
    """Shards of seven rows; those that are written, by number."""
    written, real = [], ParquetRows.between
    monkeypatch.setattr(tokenised, "SHARD", 7)
    monkeypatch.setattr(ParquetRows, "between", lambda rows, start, stop: (written.append(start // 7), real(rows, start, stop))[1])
    return written


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_batches_hold_columns_and_the_tokens_of_every_text(tiny_model, made, shards, pairs_file, sentence_pairs):
    store = made(pairs_file)
    rows = np.array([19, 0, 7, 6, 13, 14])
    batch, lookup = store.batch(rows, 5)
    assert batch.step == 5
    assert batch.ids == [f"sentences:sentences.tsv:{row + 1}" for row in rows]
    assert batch.columns["b_text"] == [sentence_pairs[row][1] for row in rows]
    tokenizer = tiny_model.member("main").tokenizer
    for text in [*batch.columns["a_text"], *batch.columns["b_text"]]:
        assert lookup["main", text, None][0].tolist() == tokenizer(text, truncation=True, max_length=9).input_ids
    lengths = [max(len(tokenizer(t, truncation=True, max_length=9).input_ids) for t in pair) for pair in sentence_pairs]
    assert store.lengths.tolist() == lengths
    assert shards == [0, 1, 2]
    assert store.facts["rows"] == 20
    assert store.facts["texts"] == 40
    assert store.facts["truncated"] == sum(len(tokenizer(t).input_ids) > 9 for pair in sentence_pairs for t in pair)


def test_other_shapes_and_missing_second_sides(made, tmp_path):
    views = [[{"kind": "full", "lang": "de", "a_text": "Ja.", "b_text": None}], None]
    labelled = {
        "id": ["1", "2"],
        "a_text": ["Yes.", "No one."],
        "a_lang": ["en", "en"],
        "b_text": [None, "The soup."],
        "b_lang": [None, "en"],
    }
    write_rows(tmp_path / "l.parquet", pa.table({**labelled, "label": [[1.0], [0.0]], "views": views}), "labelled_examples")
    batch, lookup = made(tmp_path / "l.parquet", "l").batch(np.array([0, 1]), 0)
    assert {text for _, text, _ in lookup} == {"Yes.", "Ja.", "No one.", "The soup."}
    assert batch.columns["b_text"] == [None, "The soup."]
    groups = {
        "id": ["1", "2"],
        "texts": [["a", "b", "c"], ["d"]],
        "langs": [["en"] * 3, ["de"]],
        "c_text": ["e", None],
        "c_lang": ["en", None],
    }
    write_rows(tmp_path / "g.parquet", pa.table(groups), "groups")
    store = made(tmp_path / "g.parquet", "g")
    assert {text for _, text, _ in store.batch(np.array([1]), 0)[1]} == {"d"}
    assert {text for _, text, _ in store.batch(np.array([0]), 0)[1]} == {"a", "b", "c", "e"}


def test_prefix_is_tokenised_with_the_text(tiny_model, made, pairs_file):
    store = made(pairs_file, max_length=30, prefix="the dog ")
    _, lookup = store.batch(np.array([12]), 0)
    assert lookup["main", "Yes.", None][0].tolist() == tiny_model.member("main").tokenizer("the dog Yes.").input_ids


def test_a_file_that_is_no_training_set_is_refused(made, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"bad\.parquet: .*Parquet"):
        made(tmp_path / "bad.parquet")
    assert not (tmp_path / "s").exists()


def test_pairs_that_are_read_as_one_are_stored_and_nothing_else(tiny_model, made, tmp_path):
    rows = {
        "id": ["1", "2"],
        "a_text": ["Yes, of course it is so.", "No one."],
        "a_lang": ["en", "en"],
        "b_text": ["The soup is cold.", "The soup."],
        "b_lang": ["en", "en"],
        "label": [[1.0], [0.0]],
        "views": [[{"kind": "full", "lang": "de", "a_text": "Ja.", "b_text": "Die Suppe."}], None],
    }
    write_rows(tmp_path / "l.parquet", pa.table(rows), "labelled_examples")
    store = made(tmp_path / "l.parquet", "l", 12, forms=[PAIR_VIEWS])
    _, lookup = store.batch(np.array([1, 0]), 0)
    pairs = [("Yes, of course it is so.", "The soup is cold."), ("No one.", "The soup."), ("Ja.", "Die Suppe.")]
    assert set(lookup) == {("main", *pair) for pair in pairs}
    tokenizer, cut = tiny_model.member("main").tokenizer, 0
    for pair in pairs:
        expected = tokenizer(*pair, truncation=True, max_length=12, return_token_type_ids=True)
        ids, segments = lookup[("main", *pair)]
        assert ids.tolist() == expected.input_ids
        assert segments.tolist() == expected.token_type_ids
        cut += len(tokenizer(*pair).input_ids) > 12
    assert 0 < cut < 3
    assert store.facts == {"rows": 2, "texts": 3, "tokens": sum(len(ids) for ids, _ in lookup.values()), "truncated": cut}
    assert store.lengths.tolist() == [12, 11]


@pytest.mark.parametrize("group", [3, 10, 20])
def test_shards_are_of_one_size_whatever_the_row_groups_and_the_number_of_processes(made, shards, pairs_file, tmp_path, group):
    grouped = tmp_path / "grouped.parquet"
    pq.write_table(pq.read_table(pairs_file), grouped, row_group_size=group)
    one = made(grouped, "one")
    assert [datasets.Dataset.from_file(str(path)).num_rows for path in sorted((tmp_path / "one").glob("*.arrow"))] == [7, 7, 6]
    assert one.batch(np.arange(20), 0)[0].ids == pq.read_table(pairs_file)["id"].to_pylist()
    del shards[:]
    made(grouped, "two", processes=2)
    assert shards == []  # by other processes
    assert files(tmp_path / "one") == files(tmp_path / "two")


def killed_in(forks, tiny_encoder, pairs_file, folder, shard, number=signal.SIGKILL):
    """Tokenise in a process of its own, which is killed while it writes a shard; return its exit code."""
    code = """
import os, sys
from pathlib import Path
from crosslign.encoders.model import Model
from crosslign.training import tokenised
tokenised.SHARD, real = 7, tokenised._with_tokens
def with_tokens(rows, model, settings):
    made = real(rows, model, settings)
    if int(rows["id"][0].as_py().rpartition(":")[2]) > 7 * int(sys.argv[4]):
        Path(sys.argv[3], "s.work", "tmpabc").write_bytes(b"half")  # as `datasets` calls what it writes
        os.kill(os.getpid(), int(sys.argv[5]))
    return made
tokenised._with_tokens = with_tokens
settings = {"max_length": 9, "prefix": "", "forms": ["sentences", "views"]}
folder, model = Path(sys.argv[3]), Model.load({"main": Path(sys.argv[1]) / "main"}, weights=False)
tokenised.tokenise_examples(Path(sys.argv[2]), folder / "s", folder / "s.work", model, settings)
"""
    return forks.run(code, tiny_encoder, pairs_file, folder, str(shard), str(int(number))).returncode


def test_a_killed_process_repeats_unfinished_shards_only_and_leaves_nothing_behind(forks, made, shards, tiny_encoder, pairs_file, tmp_path):
    made(pairs_file, "whole")
    assert killed_in(forks, tiny_encoder, pairs_file, tmp_path, 1) == -signal.SIGKILL
    assert not (tmp_path / "s").exists()
    assert len(list((tmp_path / "s.work").iterdir())) == 2
    del shards[:]
    made(pairs_file)
    assert shards == [1, 2]
    assert files(tmp_path / "s") == files(tmp_path / "whole")
    assert not (tmp_path / "s.work").exists()


@pytest.mark.parametrize("change", ["a bit", "the examples", "the length"])
def test_what_a_killed_process_left_of_something_else_is_not_used(forks, made, shards, tiny_encoder, pairs_file, tmp_path, change):
    assert killed_in(forks, tiny_encoder, pairs_file, tmp_path, 2) == -signal.SIGKILL
    _, second = sorted((tmp_path / "s.work").glob("*.arrow"))
    given = {"path": pairs_file}
    if change == "a bit":
        content = bytearray(second.read_bytes())
        content[len(content) // 2] ^= 4
        second.write_bytes(content)
    elif change == "the length":
        given["max_length"] = 8
    else:
        given["path"] = tmp_path / "other.parquet"
        write_rows(given["path"], pq.read_table(pairs_file).slice(1), "pairs")
    made(**given)
    assert shards == ([1, 2] if change == "a bit" else [0, 1, 2])
    made(**given, name="whole")
    assert files(tmp_path / "s") == files(tmp_path / "whole")


def test_a_process_that_dies_ends_the_job_in_words(made, shards, pairs_file, tmp_path, monkeypatch):
    parent = os.getpid()

    def die(*given, **named):
        assert os.getpid() != parent
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(tokenised, "_with_tokens", die)
    with pytest.raises(ResourceError, match=r"pairs\.parquet: .*killed.*memory"):
        made(pairs_file, processes=2)
    assert not (tmp_path / "s").exists()


def test_no_text_is_longer_than_its_member_has_positions(made, tiny_model, pairs_file, monkeypatch):
    monkeypatch.setattr(tiny_model.member("main"), "positions", 6)
    assert made(pairs_file).lengths.max() == 6


def test_examples_that_another_tokenizer_read_are_refused(made, pairs_file, tiny_encoder, tmp_path):
    made(pairs_file)
    other = Model.load({"main": tiny_encoder / "main"})
    other.member("main").tokenizer.backend_tokenizer.add_tokens(["another"])
    with pytest.raises(InputError, match=r"/s: .*tokenised"):
        Store(tmp_path / "s", other)


def test_weights_are_not_read_to_tokenise(made, tiny_encoder, pairs_file, tmp_path):
    model = Model.load({"main": tiny_encoder / "main"}, weights=False)
    assert {str(parameter.device) for parameter in model.parameters()} == {"meta"}
    settings = {"max_length": 9, "prefix": "", "forms": ["sentences", "views"]}
    tokenise_examples(pairs_file, tmp_path / "t", tmp_path / "t.work", model, settings)
    made(pairs_file)
    assert files(tmp_path / "t") == files(tmp_path / "s")
