"""Matrices on disk: shards, processes side by side, what a killed run leaves, types on disk."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
import torch

from crosslign.encoders import matrices, shards
from crosslign.encoders.encode import encode
from crosslign.encoders.matrices import embed_texts
from crosslign.encoders.shards import Task, side_by_side
from crosslign.errors import InputError, ResourceError
from crosslign.files import write_rows
from crosslign.workers import Worker

READOUT = {"pooling": "mean", "layer": -1, "max_length": 32, "normalise": True, "precision": "fp32", "prefix": ""}
NO_TASK = Task({}, "texts", {}, "x.npy")


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch):
    """A CPU's bytes and processes are what is compared here, on a machine with GPUs too; tests/gpu has theirs."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)


@pytest.fixture
def english(sentence_pairs):
    return [pair[0] for pair in sentence_pairs]


@pytest.fixture
def texts(tmp_path, english):
    ids = [str(number) for number in range(1, len(english) + 1)]
    write_rows(tmp_path / "texts.parquet", pa.table({"text_id": ids, "lang": ["en"] * len(ids), "text": english}), "texts")
    return tmp_path / "texts.parquet"


@pytest.fixture
def embed(tiny_encoder, texts):
    def run(out, **options):
        return embed_texts({"main": tiny_encoder / "main"}, texts, READOUT, out, named="line {}", **options)

    return run


@pytest.fixture
def workers(forks, monkeypatch):
    """Processes that encode load nothing anew."""
    monkeypatch.setattr(sys, "executable", str(forks.python))


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(matrices, "SHARD", 6)


def interrupted_at_the_last_shard(embed, tmp_path, monkeypatch):
    """Encode all shards but the last, and keep them in the working folder."""
    real = shards.ShardEncoder.__call__

    def last_dies(self, start, progress):
        if start == 18:
            raise KeyboardInterrupt
        return real(self, start, progress)

    with monkeypatch.context() as patch:
        patch.setattr(shards.ShardEncoder, "__call__", last_dies)
        with pytest.raises(KeyboardInterrupt):
            embed(tmp_path / "x.npy", work=tmp_path / "work")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_are_those_of_the_encoder(embed, tmp_path, tiny_model, english, dtype):
    counts = embed(tmp_path / "x.npy", dtype=dtype, work=tmp_path / "work")
    found = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert found.dtype == counts["dtype"] == dtype
    assert np.array_equal(found, encode(tiny_model, english, ["en"] * len(english), READOUT).astype(dtype))
    assert (counts["rows"], counts["dimension"], counts["device"], counts["devices"]) == (20, 32, "cpu", 1)
    assert not list((tmp_path / "work").iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError("bad")])
def test_encoding_goes_on_behind_the_shards_that_are_done(embed, tmp_path, monkeypatch, small_shards, error):
    embed(tmp_path / "whole.npy")
    real, seen = shards.ShardEncoder.__call__, []

    def dies_at_the_third(self, start, progress):
        seen.append(start)
        if len(seen) == 3:
            raise error
        return real(self, start, progress)

    monkeypatch.setattr(shards.ShardEncoder, "__call__", dies_at_the_third)
    with pytest.raises(type(error) if isinstance(error, Exception) else error):
        embed(tmp_path / "x.npy", work=tmp_path / "work", identity={"of": "one"})
    assert not (tmp_path / "x.npy").exists()
    embed(tmp_path / "x.npy", work=tmp_path / "work", identity={"of": "one"})
    assert seen == [0, 6, 12, 12, 18]
    assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.long)])
def test_the_log_tells_the_time_left_for_all_texts(embed, tmp_path, monkeypatch, small_shards, caplog, processes):
    monkeypatch.setattr("crosslign.progress.Pace.due", lambda *_: True)
    with caplog.at_level("INFO", "crosslign.progress"):
        embed(tmp_path / "x.npy", processes=processes)
    said = [record.message for record in caplog.records]
    assert re.fullmatch(r"encoded 20 of 20 texts, \d+/s, 0 s left", said[-1])
    assert all(re.match(r"encoded \d+ of 20 texts, \d+/s, \d+ s left", line) for line in said)
    assert len(said) >= 4


def test_what_an_earlier_run_encoded_counts_as_done(embed, tmp_path, monkeypatch, small_shards, caplog):
    interrupted_at_the_last_shard(embed, tmp_path, monkeypatch)
    monkeypatch.setattr("crosslign.progress.Pace.due", lambda *_: True)
    with caplog.at_level("INFO", "crosslign.progress"):
        embed(tmp_path / "x.npy", work=tmp_path / "work")
    said = [record.message for record in caplog.records]
    assert said[0] == "continuing after 18 texts that were encoded before"
    assert said[1].startswith("encoded 20 of 20 texts")


@pytest.mark.parametrize("lost", [1, 700])
def test_a_matrix_that_lost_its_end_is_begun_again(embed, tmp_path, monkeypatch, small_shards, lost):
    """numpy fills a short file up with zeros when it is opened for writing."""
    embed(tmp_path / "whole.npy")
    real, seen = shards.ShardEncoder.__call__, []

    def dies_at_the_last(self, start, progress):
        seen.append(start)
        if start == 18 and seen.count(18) == 1:
            raise KeyboardInterrupt
        return real(self, start, progress)

    monkeypatch.setattr(shards.ShardEncoder, "__call__", dies_at_the_last)
    with pytest.raises(KeyboardInterrupt):
        embed(tmp_path / "x.npy", work=tmp_path / "work")
    part = tmp_path / "work" / "x.part.npy"
    part.write_bytes(part.read_bytes()[:-lost])
    embed(tmp_path / "x.npy", work=tmp_path / "work")
    assert seen == [0, 6, 12, 18, 0, 6, 12, 18]
    assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_a_shard_of_which_a_bit_flipped_is_encoded_again(embed, tmp_path, monkeypatch, small_shards, caplog):
    embed(tmp_path / "whole.npy")
    real, seen = shards.ShardEncoder.__call__, []

    def dies_at_the_last(self, start, progress):
        seen.append(start)
        if seen.count(18) == 1 and start == 18:
            raise KeyboardInterrupt
        return real(self, start, progress)

    monkeypatch.setattr(shards.ShardEncoder, "__call__", dies_at_the_last)
    with pytest.raises(KeyboardInterrupt):
        embed(tmp_path / "x.npy", work=tmp_path / "work")
    part = np.load(tmp_path / "work" / "x.part.npy", mmap_mode="r+")
    part.view(np.uint32)[7, 3] ^= 4
    part.flush()
    embed(tmp_path / "x.npy", work=tmp_path / "work")
    assert seen == [0, 6, 12, 18, 6, 18]
    assert "rows from 6 on are damaged; encoding them again" in caplog.text
    assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_another_identity_starts_from_the_beginning(embed, tmp_path, monkeypatch, small_shards):
    real, seen = shards.ShardEncoder.__call__, []

    def second_dies(self, start, progress):
        seen.append(start)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return real(self, start, progress)

    monkeypatch.setattr(shards.ShardEncoder, "__call__", second_dies)
    with pytest.raises(KeyboardInterrupt):
        embed(tmp_path / "x.npy", work=tmp_path / "work", identity={"readout": "one"})
    embed(tmp_path / "x.npy", work=tmp_path / "work", identity={"readout": "other"})
    assert seen == [0, 6, 0, 6, 12, 18]


@pytest.mark.parametrize("changed", ["dtype", "rows", "shard"])
def test_shards_of_another_type_or_size_or_number_of_rows_are_encoded_again(
    embed, texts, english, tmp_path, monkeypatch, small_shards, changed
):
    """Whatever the caller says that the vectors depend on."""
    interrupted_at_the_last_shard(embed, tmp_path, monkeypatch)
    options = {"dtype": "float16"} if changed == "dtype" else {}
    if changed == "shard":
        monkeypatch.setattr(matrices, "SHARD", 12)
    if changed == "rows":
        ids = [str(number) for number in range(1, 18)]
        write_rows(texts, pa.table({"text_id": ids, "lang": ["en"] * 17, "text": english[:17]}), "texts")
    embed(tmp_path / "x.npy", work=tmp_path / "work", **options)
    embed(tmp_path / "fresh.npy", **options)
    assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "fresh.npy").read_bytes()


def test_second_segments_that_only_some_shards_have_are_refused(embed, texts, english, tmp_path, small_shards):
    """Each shard by itself has them all, or none."""
    columns = {"text_id": [str(number) for number in range(20)], "lang": ["en"] * 20, "text": english}
    write_rows(texts, pa.table({**columns, "pair_text": english[:6] + [None] * 14}), "texts")
    with pytest.raises(InputError, match=r"pair_text; 14 of 20 "):
        embed(tmp_path / "x.npy")


def test_without_a_folder_of_work_nothing_is_left_behind(embed, tmp_path, monkeypatch, small_shards):
    monkeypatch.setattr(shards.ShardEncoder, "__call__", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        embed(tmp_path / "out" / "x.npy")
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.usefixtures("workers")
def test_processes_write_the_bytes_of_one_and_go_on_when_one_was_killed(embed, tmp_path, monkeypatch, small_shards):
    one = embed(tmp_path / "one.npy", threads=1)
    real, asked = Worker.ask, []

    def killed_at_the_second_shard(self, line):
        asked.append(line)
        if asked.count([6]) == 1 and line == [6]:
            os.kill(self.process.pid, signal.SIGKILL)
        return real(self, line)

    monkeypatch.setattr(Worker, "ask", killed_at_the_second_shard)
    with pytest.raises(ResourceError, match="status -9"):
        embed(tmp_path / "two.npy", processes=2, work=tmp_path / "work")
    monkeypatch.setattr(Worker, "ask", real)
    two = embed(tmp_path / "two.npy", processes=2, work=tmp_path / "work")
    assert {**one, "devices": 2} == two
    assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "two.npy").read_bytes()


@pytest.mark.usefixtures("workers")
def test_an_error_in_a_process_is_told_as_in_one(tiny_encoder, tmp_path):
    path = tmp_path / "mixed.parquet"
    write_rows(path, pa.table({"text_id": ["1"], "lang": ["zh"], "text": ["对"]}), "texts")
    task = Task({"en": str(tiny_encoder / "main")}, str(path), READOUT, str(tmp_path / "none.npy"))
    with pytest.raises(InputError, match="'zh'"):
        list(side_by_side(task, ["cpu"], 1, lambda facts: [0]))


@pytest.mark.parametrize("cores", [{"processes": 9}, {"threads": 9}], ids=["that would be processes", "of one process"])
def test_every_gpu_has_a_process_of_its_own_that_stays_on_it(embed, tmp_path, monkeypatch, small_shards, cores):
    told, chosen = [], []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    limits = []
    monkeypatch.setattr(matrices, "limit_threads", limits.append)
    monkeypatch.setattr(matrices, "side_by_side", lambda *given: told.append(given) or (shard for shard in ()))
    monkeypatch.setattr(matrices._Shards, "finish", lambda *_: None)
    assert embed(tmp_path / "out.npy", **cores)["devices"] == 2
    task, devices, threads, _ = told[0]
    assert devices == ["cuda:0", "cuda:1"]
    assert limits == [threads] == [4]  # the cores tokenise, each process with its share of them
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(shards.Model, "to", lambda model, device: chosen.append(device) or model)
    shards.ShardEncoder(task, devices[1])
    assert chosen == [torch.device("cuda", 1)] * 2


def test_the_others_end_at_once_where_one_fails(monkeypatch):
    """Who waited for their answers would wait for shards that nobody keeps."""
    closed, ended = threading.Event(), []

    class Fake:
        def __init__(self, work, given, where, threads):
            self._device = given["device"]

        def ask(self, starts):
            if not starts:
                return {}
            if self._device == "fails":
                raise InputError("bad")
            ended.append(closed.wait(20))
            return {}

        def close(self):
            closed.set()

    monkeypatch.setattr(shards, "Worker", Fake)
    with pytest.raises(InputError, match="bad"):
        list(side_by_side(NO_TASK, ["works", "fails"], 1, lambda facts: [0, 6, 12]))
    assert ended == [True]


@pytest.mark.parametrize(("device", "told"), [("cpu", [[0], [6], [12], [18]]), ("cuda", [[0, 12], [6, 18], [12], [18]])])
def test_a_gpus_process_is_told_the_next_shard_with_each_and_every_process_has_one(monkeypatch, device, told):
    asked, all_began = [], threading.Barrier(2)

    class Fake:
        def __init__(self, work, given, where, threads):
            self._fresh = True

        def ask(self, starts):
            if not starts:
                return {}
            asked.append(list(starts))
            if self._fresh:
                self._fresh = False
                all_began.wait(20)
            return {"truncated": starts[0]}

        def close(self):
            pass

    monkeypatch.setattr(shards, "Worker", Fake)
    found = dict(side_by_side(NO_TASK, [f"{device}:0" if device == "cuda" else device] * 2, 1, lambda facts: [0, 6, 12, 18]))
    assert found == {start: {"truncated": start} for start in (0, 6, 12, 18)}
    assert sorted(asked) == sorted(told)


@pytest.mark.usefixtures("workers")
def test_a_process_that_encodes_leaves_ctrl_c_to_who_asks_it(tiny_encoder, texts, tmp_path):
    """The terminal sends it to all of them: a traceback of each would hide what the command says."""
    np.save(tmp_path / "x.npy", np.zeros((20, 32), np.float32))
    task = Task({"main": str(tiny_encoder / "main")}, str(texts), READOUT, str(tmp_path / "x.npy"), shard=6)
    worker = Worker(shards.shard_work, {"task": asdict(task), "device": "cpu"}, "texts")
    try:
        worker.ask([])
        worker.process.send_signal(signal.SIGINT)
        assert worker.ask([6])["truncated"] == 0
    finally:
        worker.close()
    assert np.load(tmp_path / "x.npy").any(1).tolist() == [6 <= row < 12 for row in range(20)]


@pytest.mark.parametrize("row", [7e4, 1e-9])
def test_a_vector_that_float16_cannot_hold_is_refused_by_line(embed, tmp_path, monkeypatch, row):
    """Too large a number becomes infinite there, and a vector of small ones zero."""
    vectors = np.full((20, 32), 1.0, np.float32)
    vectors[1] = row
    monkeypatch.setattr(shards, "encode_counted", lambda *_, **__: (vectors, 0))
    with pytest.raises(InputError, match=r"line 2: .*float16.*float32"):
        embed(tmp_path / "x.npy", dtype="float16")


def test_a_head_works_in_one_process_on_every_machine(embed, tmp_path, monkeypatch, small_shards):
    monkeypatch.setattr(matrices, "side_by_side", lambda *_: pytest.fail("a head is not sent to other processes"))
    head = torch.nn.Linear(32, 3)
    counts = embed(tmp_path / "logits.npy", processes=4, head=lambda model: head)
    assert counts["dimension"] == 3
    assert np.load(tmp_path / "logits.npy").shape == (20, 3)


def test_no_texts_no_rows(tiny_encoder, tmp_path):
    write_rows(tmp_path / "none.parquet", pa.table({"text_id": pa.array([], pa.string())}), "texts")
    counts = embed_texts({"main": tiny_encoder / "main"}, tmp_path / "none.parquet", READOUT, tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").shape == (0, 32)
    assert counts["rows"] == 0


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_matrix_that_the_disk_has_no_room_for_is_refused_before_the_first_shard(small_disk):
    shards_done = matrices._Shards(small_disk, "x", {})
    with pytest.raises(ResourceError, match=r"space .*bytes.*crosslign plan"):
        shards_done.prepare(1000, 32, "float32")
    assert not list(small_disk.iterdir())
    assert shards_done.prepare(100, 32, "float32") == [0]
    assert shards_done.matrix.stat().st_blocks * 512 >= 100 * 32 * 4
