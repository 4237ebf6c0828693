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
from crosslign.corpora.build import build_corpus, filter_shards
from crosslign.corpora.filters.length import Length
from crosslign.corpora.kept_shards import Shards
from crosslign.errors import InputError
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

    def one(kept=None, breaks=None, sample=40, filters=FILTERS, parts=()):
        def read(files, corpus, langs):
            for number, table in enumerate(tables()):
                if number == breaks:
                    raise RuntimeError("killed")
                yield table

        monkeypatch.setitem(READERS._entries, "any", read)
        entry = {"kind": "mono", "reader": "any", "langs": ["en"], "filters": filters, "sample": sample}
        out = tmp_path / "rows.parquet"
        counts = build_corpus("c", entry, {}, {}, out, shards=kept, parts=parts)
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


@pytest.fixture
def share(build, monkeypatch, tmp_path):
    """Filter one job's share of the source that `build` reads, which breaks off before a table where one is given; return its folder."""

    def one(part, parts, breaks=None, filters=FILTERS, sample=40):
        def read(files, corpus, langs):
            for number, table in enumerate(tables()):
                if number == breaks:
                    raise RuntimeError("killed")
                yield table

        monkeypatch.setitem(READERS._entries, "any", read)
        entry = {"kind": "mono", "reader": "any", "langs": ["en"], "filters": filters, "sample": sample}
        out = tmp_path / f"{part}-of-{parts}"
        shards = Shards(tmp_path / f".{part}-of-{parts}.shards", "one", part, parts)
        filter_shards("c", entry, {}, {}, out, None, shards)
        return out

    return one


@pytest.mark.parametrize("jobs", [1, 2, 3, 7])
def test_jobs_that_share_a_source_give_the_bytes_of_one(build, share, jobs):
    whole, counts = build()
    shares = [share(part, jobs) for part in range(1, jobs + 1)]
    found, joined = build(parts=shares)
    assert found == whole
    assert {key: joined[key] for key in ("read", "read_bytes", "rows", "per_language")} == {
        key: counts[key] for key in ("read", "read_bytes", "rows", "per_language")
    }
    assert [step["filter"] for step in joined["filters"]] == [step["filter"] for step in counts["filters"]]
    assert joined["filters"][0]["before"] >= counts["filters"][0]["before"]  # each job learns by itself which rows can be drawn


def test_each_row_is_filtered_by_one_of_the_jobs(build, share, monkeypatch, tmp_path):
    seen = seen_by(monkeypatch, Length)
    monkeypatch.setattr("crosslign.corpora.sampling.SPARE", 10**6)  # all rows could be drawn
    for part in (1, 2, 3):
        share(part, 3)
    assert sum(seen) == 700
    build(parts=[tmp_path / f"{part}-of-3" for part in (1, 2, 3)])
    assert sum(seen) == 700  # the corpus filters nothing again


def test_a_killed_share_goes_on_behind_its_own_shards(build, share, monkeypatch):
    whole = build()
    shares = [share(1, 2)]
    with pytest.raises(RuntimeError):
        share(2, 2, breaks=70)
    seen = seen_by(monkeypatch, Length)
    shares.append(share(2, 2))
    assert len(seen) == 20  # of the shards 1 and 3 of five, the first was kept
    assert build(parts=shares)[0] == whole[0]


def test_a_share_that_is_damaged_or_gone_is_told(build, share):
    shares = [share(part, 2) for part in (1, 2)]
    (shares[1] / "3.arrow").write_bytes(b"")
    with pytest.raises(InputError, match=r"2-of-2: .*\b3\b"):
        build(parts=shares)


def test_a_corpus_whose_rows_hang_on_others_is_shared_by_no_jobs(share):
    for more in ({"filters": [*FILTERS, {"near_duplicate": {"threshold": 0.9}}]}, {"sample": None}):
        with pytest.raises(InputError, match=r"c: .*shared"):
            share(1, 2, **more)
