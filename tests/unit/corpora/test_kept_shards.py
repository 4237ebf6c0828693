"""Shards of a large source: the bytes of a single pass, however many there are and wherever a job was killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys

import pyarrow as pa
import pytest

from crosslign.corpora import READERS, kept_shards
from crosslign.corpora.build import build_corpus
from crosslign.corpora.filters.length import Length
from crosslign.corpora.kept_shards import Shards
from crosslign.files import sha256_file
from crosslign.files.rows import SCHEMAS

FILTERS = [{"length": {"min_words": 3}}, {"exact_duplicate": {}}, {"html_tags": {}}]


def tables(rows=700, size=7):
    made = random.Random(1)
    texts = [f"{'word ' * made.randrange(1, 4)}{made.randrange(200)}{made.choice(['', '!', ' <b>x</b>'])}" for _ in range(rows)]
    for start in range(0, rows, size):
        part = [{"id": f"c:f:{n + 1}", "lang": "en", "text": texts[n]} for n in range(start, min(start + size, rows))]
        yield pa.Table.from_pylist(part, schema=SCHEMAS["mono"])


@pytest.fixture
def build(monkeypatch, tmp_path):
    """Build the corpus, with the shards of a folder; its reader breaks off before a table where one is given."""
    monkeypatch.setattr("crosslign.corpora.sampling.SPARE", 50)
    monkeypatch.setattr("crosslign.corpora.kept_shards.SHARD", 20)

    def one(kept=None, breaks=None, sample=40, filters=FILTERS):
        def read(files, corpus, langs):
            for number, table in enumerate(tables()):
                if number == breaks:
                    raise RuntimeError("killed")
                yield table

        monkeypatch.setitem(READERS._entries, "any", read)
        entry = {"kind": "mono", "reader": "any", "langs": ["en"], "filters": filters, "sample": sample}
        out = tmp_path / "rows.parquet"
        counts = build_corpus("c", entry, {}, {}, out, shards=kept)
        return sha256_file(out), counts

    return one


def seen_by(monkeypatch, filter_class):
    seen = []
    keep = filter_class.keep
    monkeypatch.setattr(filter_class, "keep", lambda self, batch: seen.append(len(batch)) or keep(self, batch))
    return seen


@pytest.mark.parametrize("breaks", [0, 20, 61, 99])
def test_a_killed_job_repeats_the_last_shard_alone_and_gives_the_same_bytes(build, breaks, monkeypatch, tmp_path):
    whole = build()
    seen = seen_by(monkeypatch, Length)
    assert build() == whole
    all_rows = sum(seen)
    folder = tmp_path / "shards"
    with pytest.raises(RuntimeError):
        build(Shards(folder, "one"), breaks)
    seen.clear()
    assert build(Shards(folder, "one")) == whole
    assert not folder.exists()
    done = breaks // 20
    assert (sum(seen) < all_rows) == (done > 0)
    assert len(seen) <= 100 - 20 * done


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_number_of_shards_changes_no_byte(build, size, monkeypatch, tmp_path):
    whole = build()
    monkeypatch.setattr(kept_shards, "SHARD", size)
    assert build(Shards(tmp_path / "shards", "one")) == whole


@pytest.mark.parametrize("spoil", ["identity", "rows", "counts", "gone", "[]", "null", "[" * 20_000])
def test_shards_of_another_corpus_and_damaged_ones_are_not_believed(build, spoil, tmp_path):
    whole, folder = build(), tmp_path / "shards"
    with pytest.raises(RuntimeError):
        build(Shards(folder, "one"), 70)
    if spoil == "rows":
        kept = bytearray((folder / "2.arrow").read_bytes())
        kept[len(kept) // 2] ^= 1
        (folder / "2.arrow").write_bytes(kept)
    elif spoil == "counts":
        (folder / "1.json").write_text('{"tables": ')
    elif spoil == "gone":
        (folder / "0.arrow").unlink()
    elif spoil != "identity":
        (folder / "1.json").write_text(spoil)
    assert build(Shards(folder, "other" if spoil == "identity" else "one")) == whole


def test_filters_that_look_at_other_rows_keep_no_shards(build, tmp_path):
    for more, sample in (({"filters": [*FILTERS, {"near_duplicate": {"threshold": 0.9}}]}, 40), ({}, None)):
        with pytest.raises(RuntimeError):
            build(Shards(tmp_path / "shards", "one"), 90, sample=sample, **more)
        assert not (tmp_path / "shards").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from crosslign.corpora import kept_shards
from crosslign.corpora.build import build_corpus
kept_shards.SHARD = 2
done = kept_shards.Shards.done
def then_die(self, number, counts):
    done(self, number, counts)
    if number == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
kept_shards.Shards.done = then_die
entry = {"kind": "mono", "reader": "text_lines", "langs": ["en"], "sample": 500,
         "filters": [{"length": {"min_words": 2}}, {"exact_duplicate": {}}]}
build_corpus("c", entry, {"a.txt": Path(sys.argv[1])}, {}, Path(sys.argv[2]), shards=kept_shards.Shards(Path(sys.argv[2] + ".shards"), 1))
"""


def test_a_job_that_is_killed_outright_goes_on(tmp_path):
    made = random.Random(2)
    text = tmp_path / "a.txt"
    text.write_text("".join(f"sentence {made.randrange(9000)} of the text\n" for _ in range(40_000)))

    def job(out, dies):
        command = [sys.executable, "-c", KILLED, str(text), str(tmp_path / out), str(dies)]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False).returncode

    assert job("whole", 99) == 0
    assert job("killed", 1) == -signal.SIGKILL
    assert sorted(path.name for path in (tmp_path / "killed.shards").glob("*.arrow")) == ["0.arrow", "1.arrow"]
    assert job("killed", 99) == 0
    assert sha256_file(tmp_path / "killed") == sha256_file(tmp_path / "whole")
    assert not (tmp_path / "killed.shards").exists()
