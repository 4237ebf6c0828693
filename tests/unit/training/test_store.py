"""Tokenised examples: equal to tokenising on the spot, whatever the shape; made again when anything changed."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from crosslign.errors import InputError, ResourceError, StoppedError
from crosslign.files import read_json, write_json, write_rows
from crosslign.files.locks import locked
from crosslign.training import store as module
from crosslign.training import tokenised
from crosslign.training.signals import StopFlag
from crosslign.training.store import Store


def test_batches_hold_columns_and_the_tokens_of_every_text(tiny_model, pairs_file, sentence_pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(tokenised, "CHUNK", 7)  # several record batches
    store = Store.open(pairs_file, tmp_path / "s", tiny_model, 9)
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
    store = Store.open(tmp_path / "g.parquet", tmp_path / "g", tiny_model, 9)
    assert {text for _, text, _ in store.batch(np.array([1]), 0)[1]} == {"d"}
    assert {text for _, text, _ in store.batch(np.array([0]), 0)[1]} == {"a", "b", "c", "e"}


def test_opened_again_only_while_nothing_changed(tiny_model, pairs_file, tmp_path, monkeypatch):
    made = []
    real = module.write_tokenised
    monkeypatch.setattr(module, "write_tokenised", lambda *arguments: (made.append(1), real(*arguments)))
    for length, prefix in ((9, ""), (9, ""), (12, ""), (12, "query: "), (12, "query: ")):
        tiny_model.member("main").tokenizer("another call", truncation=True, max_length=3)
        Store.open(pairs_file, tmp_path / "s", tiny_model, length, prefix)
    assert len(made) == 3


def test_encoders_of_one_tokenizer_that_read_to_different_lengths_share_no_copy(tiny_model, pairs_file, tmp_path, monkeypatch):
    """One that has positions for six tokens, and one for 512: what the second left would be too long for the first."""
    longest = []
    for positions in (512, 6, 512, 9):
        monkeypatch.setattr(tiny_model.member("main"), "positions", positions)
        longest.append(int(Store.open(pairs_file, tmp_path / "s", tiny_model, 9, shared=tmp_path / "shared").lengths.max()))
    assert longest == [9, 6, 9, 9]
    assert len(list((tmp_path / "shared").glob("pairs-*"))) == 2


def test_prefix_is_tokenised_with_the_text(tiny_model, pairs_file, tmp_path):
    store = Store.open(pairs_file, tmp_path / "s", tiny_model, 30, "the dog ")
    _, lookup = store.batch(np.array([12]), 0)
    assert lookup["main", "Yes.", None][0].tolist() == tiny_model.member("main").tokenizer("the dog Yes.").input_ids


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


def test_stopped_between_chunks_it_goes_on_to_the_same_files(tiny_model, pairs_file, tmp_path, monkeypatch):
    monkeypatch.setattr(tokenised, "CHUNK", 7)
    Store.open(pairs_file, tmp_path / "whole", tiny_model, 9)
    stop, added, real = StopFlag(), [], tokenised._Writer.add

    def add(self, chunk):
        real(self, chunk)
        added.append(len(chunk.texts))
        stop.signal = "SIGTERM"

    monkeypatch.setattr(tokenised._Writer, "add", add)
    with pytest.raises(StoppedError, match="7 of 20 examples"):
        Store.open(pairs_file, tmp_path / "stopped", tiny_model, 9, stop=stop)
    assert not (tmp_path / "stopped").exists()
    with open(tmp_path / "stopped.partial" / "tokens.bin", "ab") as torn:  # a killed process was writing the next chunk
        torn.write(b"half")
    store = Store.open(pairs_file, tmp_path / "stopped", tiny_model, 9)
    assert added == [7, 7, 6]
    assert store.rows == 20
    files = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "stopped").iterdir())
    assert all((tmp_path / "whole" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes() for name in files)
    assert not (tmp_path / "stopped.partial").exists()


def test_what_a_stopped_process_left_of_other_examples_is_not_used(tiny_model, pairs_file, tmp_path, monkeypatch):
    monkeypatch.setattr(tokenised, "CHUNK", 7)
    stop, real = StopFlag(), tokenised._Writer.add
    monkeypatch.setattr(tokenised._Writer, "add", lambda self, *given: (real(self, *given), stop.raise_by(15, None)))
    for length in (9, 12):
        stop.signal = None
        with pytest.raises(StoppedError, match="7 of 20 examples"):
            Store.open(pairs_file, tmp_path / "s", tiny_model, length, stop=stop)


def test_pairs_that_are_read_as_one_are_stored_and_nothing_else(tiny_model, pairs_file, tmp_path):
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
    store = Store.open(tmp_path / "l.parquet", tmp_path / "l", tiny_model, 12, "", [tokenised.PAIR_VIEWS])
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
    store = Store.open(pairs_file, tmp_path / "w", tiny_model, 9, "", [tokenised.PAIR_VIEWS])
    assert {second for _, _, second in store.batch(np.array([1, 0]), 0)[1]} == {None}


def test_several_processes_write_the_bytes_of_one(tiny_model, pairs_file, tmp_path, monkeypatch):
    monkeypatch.setattr(tokenised, "CHUNK", 3)
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    Store.open(pairs_file, tmp_path / "one", tiny_model, 9)
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "2")
    makers, make, add = [], tokenised.make_chunk, tokenised._Writer.add

    def added(self, chunk):
        makers.append(chunk.truncated)
        add(self, replace(chunk, truncated=1))

    monkeypatch.setattr(tokenised, "make_chunk", lambda *given: replace(make(*given), truncated=os.getpid()))
    monkeypatch.setattr(tokenised._Writer, "add", added)
    Store.open(pairs_file, tmp_path / "two", tiny_model, 9)
    assert len(makers) == 7
    assert os.getpid() not in makers
    for name in ("tokens.bin", "starts.bin", "rows.bin", "rows.arrow"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    one, two = (read_json(tmp_path / name / "facts.json") for name in ("one", "two"))
    assert {**one, "truncated": 7} == two


@pytest.mark.parametrize(
    ("asked", "error", "said"), [(False, ResourceError, "was killed.*memory"), (True, StoppedError, "0 of 20 examples")]
)
def test_a_process_that_dies_ends_the_run_in_words(tiny_model, pairs_file, tmp_path, monkeypatch, asked, error, said):
    """All processes of a job get its scheduler's signal to stop; one that was killed alone lacked memory."""
    monkeypatch.setattr(tokenised, "CHUNK", 3)
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "2")
    stop, parent = StopFlag(), os.getpid()

    def die(*given):
        assert os.getpid() != parent
        os.kill(os.getpid(), signal.SIGTERM)

    def chunks(*given, real=tokenised._chunks):
        if asked:
            stop.raise_by(signal.SIGTERM, None)
        yield from real(*given)

    monkeypatch.setattr(tokenised, "make_chunk", die)
    monkeypatch.setattr(tokenised, "_chunks", chunks)
    with pytest.raises(error, match=said):
        Store.open(pairs_file, tmp_path / "s", tiny_model, 9, stop=stop)
    assert not (tmp_path / "s").exists()


def test_runs_share_one_copy_of_what_they_read_alike(tiny_model, pairs_file, tmp_path, monkeypatch):
    made = []
    real = module.write_tokenised
    monkeypatch.setattr(module, "write_tokenised", lambda *arguments: (made.append(1), real(*arguments)))
    alone = Store.open(pairs_file, tmp_path / "alone", tiny_model, 9)
    shared = tmp_path / "shared"
    for run, length in (("a", 9), ("b", 9), ("c", 12), ("a", 12)):
        store = Store.open(pairs_file, tmp_path / run / "pairs", tiny_model, length, shared=shared)
        assert not (tmp_path / run / "pairs").exists()
    assert len(made) == 1 + 2
    store = Store.open(pairs_file, tmp_path / "d" / "pairs", tiny_model, 9, shared=shared)
    rows = np.array([3, 17])
    (batch, lookup), (expected, tokens) = store.batch(rows, 0), alone.batch(rows, 0)
    assert batch == expected
    assert {key: ids.tolist() for key, (ids, _) in lookup.items()} == {key: ids.tolist() for key, (ids, _) in tokens.items()}


def test_a_stopped_run_keeps_its_chunks_and_another_makes_the_shared_copy(tiny_model, pairs_file, tmp_path, monkeypatch):
    monkeypatch.setattr(tokenised, "CHUNK", 7)
    stop, added, real = StopFlag(), [], tokenised._Writer.add
    monkeypatch.setattr(tokenised._Writer, "add", lambda self, *given: (real(self, *given), added.append(1), stop.raise_by(15, None)))
    with pytest.raises(StoppedError, match="7 of 20 examples"):
        Store.open(pairs_file, tmp_path / "a" / "pairs", tiny_model, 9, stop=stop, shared=tmp_path / "shared")
    assert (tmp_path / "a" / "pairs.partial" / "progress.json").exists()
    assert Store.open(pairs_file, tmp_path / "b" / "pairs", tiny_model, 9, shared=tmp_path / "shared").rows == 20
    assert Store.open(pairs_file, tmp_path / "a" / "pairs", tiny_model, 9, shared=tmp_path / "shared").rows == 20
    assert len(added) == 1 + 3


def test_a_run_that_waits_for_the_shared_copy_of_another_can_be_stopped(tiny_model, pairs_file, tmp_path):
    shared, stop = tmp_path / "shared", StopFlag()
    Store.open(pairs_file, tmp_path / "a" / "pairs", tiny_model, 9, shared=shared)
    (place,) = (path for path in shared.iterdir() if path.is_dir())
    place.rename(tmp_path / "not yet")
    half = shared / f".{place.name}.0123.part"  # a killed process was putting it there
    half.mkdir()
    Store.open(pairs_file, tmp_path / "b" / "pairs", tiny_model, 9, shared=shared)
    assert not half.exists()
    place.rename(tmp_path / "not yet, either")
    stop.raise_by(15, None)
    with locked(shared / f".{place.name}.lock"), pytest.raises(StoppedError, match="another run tokenises pairs-"):
        Store.open(pairs_file, tmp_path / "b" / "pairs", tiny_model, 9, stop=stop, shared=shared)


def _flip(path, at=0.5):
    """Change one bit."""
    content = bytearray(path.read_bytes())
    content[int(at * (len(content) - 1))] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("file", ["tokens.bin", "starts.bin", "rows.bin", "rows.arrow", "facts.json"])
def test_a_copy_with_one_flipped_bit_is_made_again(tiny_model, pairs_file, tmp_path, caplog, file, shared):
    place = {"shared": tmp_path / "shared"} if shared else {}
    Store.open(pairs_file, tmp_path / "s", tiny_model, 9, **place)
    (path,) = tmp_path.rglob(file)
    whole = path.read_bytes()
    _flip(path)
    Store.open(pairs_file, tmp_path / "s", tiny_model, 9, **place)
    assert path.read_bytes() == whole
    caplog.clear()
    Store.open(pairs_file, tmp_path / "s", tiny_model, 9, **place)
    assert "damaged" not in caplog.text


@pytest.mark.parametrize("count", ["rows", "texts", "tokens"])
def test_a_copy_whose_facts_count_otherwise_is_made_again(tiny_model, pairs_file, tmp_path, caplog, count):
    facts = Store.open(pairs_file, tmp_path / "s", tiny_model, 9).facts
    path = tmp_path / "s" / "facts.json"
    write_json(path, {**read_json(path), count: facts[count] + 1})
    assert Store.open(pairs_file, tmp_path / "s", tiny_model, 9).facts == facts
    assert "is damaged (facts.json): it is made again" in caplog.text


@pytest.mark.parametrize("file", ["tokens.bin", "starts.bin", "rows.bin"])
def test_what_a_stopped_process_left_is_not_gone_on_with_where_a_bit_of_it_flipped(
    tiny_model, pairs_file, tmp_path, monkeypatch, caplog, file
):
    monkeypatch.setattr(tokenised, "CHUNK", 7)
    Store.open(pairs_file, tmp_path / "whole", tiny_model, 9)
    stop, real = StopFlag(), tokenised._Writer.add
    with monkeypatch.context() as patch:
        patch.setattr(tokenised._Writer, "add", lambda self, *given: (real(self, *given), stop.raise_by(15, None)))
        with pytest.raises(StoppedError, match="7 of 20 examples"):
            Store.open(pairs_file, tmp_path / "s", tiny_model, 9, stop=stop)
    _flip(tmp_path / "s.partial" / file, 0.6)
    Store.open(pairs_file, tmp_path / "s", tiny_model, 9)
    assert f"{file} is damaged: tokenising from the beginning" in caplog.text
    assert (tmp_path / "s" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
