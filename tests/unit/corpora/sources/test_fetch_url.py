"""Downloads through `fetch_file`, against a server with the failures that networks have."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_file import BODY, FILE, SHA, get, leftovers

from crosslign.errors import NetworkError


def test_a_file_comes_whole_and_once(there, dest):
    facts = get(there, dest)
    assert dest.read_bytes() == BODY
    assert facts == {"file": "corpus.zip", "bytes": len(BODY), "sha256": SHA, "recorded": False}
    assert there.requests[0]["path"] == "/data/corpus.zip"
    assert get(there, dest) == facts
    assert len(there.requests) == 1
    assert leftovers(dest) == ["corpus.zip"]


def test_path_in_the_catalog_is_what_is_asked_for(there, dest):
    get(there, dest, {**FILE, "path": "v1/the file.zip?download=1"})
    assert there.requests[0]["path"] == "/data/v1/the%20file.zip?download=1"


def test_a_drop_in_mid_file_is_resumed(there, dest, waits):
    there.plan = ["drop:100000", "ok"]
    get(there, dest)
    assert dest.read_bytes() == BODY
    assert there.requests[1]["range"] == "bytes=100000-"
    assert there.requests[1]["if-range"] == '"v1"'
    assert len(waits) == 1


def test_many_drops_that_each_bring_more_are_not_given_up(there, dest, waits):
    there.plan = [*["drop:20000"] * 9, "ok"]
    get(there, dest)
    assert dest.read_bytes() == BODY
    assert len(there.requests) == 10


def test_a_broken_download_is_resumed_by_the_next_job(there, dest, waits):
    there.plan = ["drop:50000", "503"]
    with pytest.raises(NetworkError):
        get(there, dest)
    assert not dest.exists()
    there.plan = ["ok"]
    get(there, dest)
    assert there.requests[-1]["range"] == "bytes=50000-"
    assert dest.read_bytes() == BODY


def test_a_download_killed_after_its_last_byte_is_kept(there, dest, waits):
    there.plan = [f"drop:{len(BODY)}", "ok"]
    dest.parent.mkdir(parents=True)
    dest = dest.with_name("lines.txt")
    part = dest.with_name(".lines.txt.download")
    part.write_bytes(BODY)
    part.with_name(part.name + ".state").write_text(f'{{"url": "{there.url}lines.txt", "validator": "\\"v1\\""}}')
    get(there, dest, {"name": "lines.txt"})
    assert dest.read_bytes() == BODY
    assert there.requests[0]["range"] == f"bytes={len(BODY)}-"


def test_a_download_killed_before_its_final_name_is_not_asked_for_again(there, dest, waits):
    dest.parent.mkdir(parents=True)
    dest.with_name(".corpus.zip.download").write_bytes(BODY)
    get(there, dest)
    assert there.requests == []
    assert leftovers(dest) == ["corpus.zip"]


@pytest.mark.parametrize("from_mirror", [True, False])
def test_what_a_killed_job_left_of_a_copy_goes(there, dest, waits, tmp_path, from_mirror):
    dest.parent.mkdir(parents=True)
    dest.with_name(".corpus.zip.0a1b2c3d.part").write_bytes(b"half of it")
    other = dest.with_name(".corpus.zip.sig.0a1b2c3d.part")
    other.write_bytes(b"of another file")
    if from_mirror:
        (tmp_path / "mirror" / "demo").mkdir(parents=True)
        (tmp_path / "mirror" / "demo" / "corpus.zip").write_bytes(BODY)
    get(there, dest, mirrors=[tmp_path / "mirror"] if from_mirror else ())
    assert leftovers(dest) == [other.name, "corpus.zip"]
    assert len(there.requests) == (0 if from_mirror else 1)


def test_a_server_without_ranges_starts_over_and_doubles_nothing(there, dest, waits):
    there.plan = ["drop:100000", "norange"]
    get(there, dest)
    assert dest.read_bytes() == BODY
    assert "range" in there.requests[1]


def test_a_file_that_changed_in_between_is_not_patched_together(there, dest, waits):
    there.plan = ["drop:1000", "503"]
    with pytest.raises(NetworkError):
        get(there, dest)
    there.etag, there.plan = '"v2"', ["ok"]
    get(there, dest)
    assert there.requests[-1]["if-range"] == '"v1"'
    assert dest.read_bytes() == BODY


def test_without_a_strong_validator_the_date_serves(there, dest, waits):
    there.etag, there.modified, there.plan = 'W/"v1"', "Sat, 01 Jan 2022 00:00:00 GMT", ["drop:1000", "ok"]
    get(there, dest)
    assert there.requests[1]["if-range"] == there.modified


def test_without_any_validator_only_what_is_verified_after_is_resumed(there, dest, waits):
    there.etag, there.plan = "", ["drop:1000", "ok"]
    get(there, dest, {"name": "lines.txt"})
    assert "range" not in there.requests[1]
    get(there, dest.with_name("corpus.zip"))
    assert [request.get("range") for request in there.requests] == [None, None, "bytes=0-5"]
    there.plan = [*["ok"] * len(there.requests), "drop:1000", "ok"]
    dest.with_name("corpus.zip").unlink()
    get(there, dest)
    assert there.requests[-1]["range"] == "bytes=1000-"
    assert "if-range" not in there.requests[-1]
    assert dest.read_bytes() == BODY


def test_a_weak_tag_that_has_changed_is_seen_in_the_answer(there, dest, waits):
    there.etag, there.plan = 'W/"v1"', ["drop:1000", "ok"]
    got, first = [], there.etag

    def change(seconds):
        got.append(seconds)
        there.etag, there.body = 'W/"v2"', BODY[::-1]

    import crosslign.corpora.fetch as module

    sleep, module.time.sleep = module.time.sleep, change
    try:
        with pytest.raises(NetworkError, match=rf"sha256 {SHA}"):
            get(there, dest)
    finally:
        module.time.sleep = sleep
    assert first == 'W/"v1"'
    assert dest.with_name(".corpus.zip.wrong").read_bytes() == BODY[::-1]  # whole, not put together of two


def test_another_range_than_asked_for_starts_over(there, dest, waits, monkeypatch):
    there.plan = ["drop:1000", "ok"]
    handler = __import__("http.server").server.BaseHTTPRequestHandler
    send = handler.send_header
    monkeypatch.setattr(
        handler,
        "send_header",
        lambda self, name, value: send(self, name, value.replace("1000-", "0-") if name == "Content-Range" else value),
    )
    get(there, dest)
    assert dest.read_bytes() == BODY
    assert ["range" in request for request in there.requests] == [False, True, False]


@pytest.mark.parametrize("act", ["wrong", "short:777"])
def test_wrong_bytes_are_moved_aside_tried_again_and_named(there, dest, waits, act):
    there.plan = [act]
    with pytest.raises(NetworkError) as error:
        get(there, dest)
    found = {"wrong": bytes(len(BODY)), "short:777": BODY[:777]}[act]
    for part in (there.url + "corpus.zip", SHA, hashlib.sha256(found).hexdigest()):
        assert part in str(error.value)
    assert len(there.requests) == 3
    assert leftovers(dest) == [".corpus.zip.wrong"]
    assert f"kept as {dest.with_name('.corpus.zip.wrong')}" in str(error.value)
    assert dest.with_name(".corpus.zip.wrong").read_bytes() == found
    there.plan = ["ok"]
    get(there, dest)
    assert leftovers(dest) == ["corpus.zip"]


def test_wrong_then_right(there, dest, waits):
    there.plan = ["wrong", "ok"]
    get(there, dest)
    assert dest.read_bytes() == BODY
    assert "range" not in there.requests[1]


def test_wrong_length_is_found_where_no_hash_is_known(there, dest, waits):
    with pytest.raises(NetworkError, match=r"corpus\.zip .*999 .*204,800"):
        get(there, dest, {"name": "corpus.zip", "bytes": 999})


@pytest.mark.parametrize("file", [FILE, {"name": "corpus.zip"}])
def test_a_web_page_is_found_whether_or_not_a_hash_is_known(there, dest, file):
    there.plan = ["html"]
    with pytest.raises(NetworkError, match=r"corpus\.zip .*page.*accept terms"):
        get(there, dest, file)
    assert leftovers(dest) == []


def test_a_damaged_file_in_place_is_fetched_anew(there, dest):
    dest.parent.mkdir(parents=True)
    dest.write_bytes(b"half")
    get(there, dest)
    assert dest.read_bytes() == BODY


def test_a_hash_is_recorded_at_the_first_download_and_goes_with_the_file(there, dest, waits):
    file = {"name": "lines.txt"}
    dest = dest.with_name("lines.txt")
    facts = get(there, dest, file)
    assert facts["sha256"] == SHA
    assert facts["recorded"]
    record = dest.with_name("lines.txt.sha256")
    assert record.read_text() == f"{SHA}\n"
    dest.write_bytes(b"damaged on the disk")
    there.body = BODY[::-1]
    with pytest.raises(NetworkError, match=rf"{SHA}.*delete {record}"):
        get(there, dest, file)
    dest.unlink()
    assert get(there, dest, file)["sha256"] == hashlib.sha256(BODY[::-1]).hexdigest()


def damaged_inside(compression):
    """Return a Parquet file whose head and foot are whole, as where two versions of one are joined."""
    out = io.BytesIO()
    pq.write_table(pa.table({"text": [f"{number * number}" for number in range(9999)]}), out, compression=compression)
    body = out.getvalue()
    return body[:9000] + bytes(200) + body[9200:]


@pytest.mark.parametrize(
    ("name", "body", "about", "why"),
    [
        ("en.txt.xz", b"<!DOCTYPE html>\n<html>" + b" " * 1500, 82_000_000_000, "web page"),
        ("en.txt.xz", b"plain text", None, r"en\.txt\.xz .*\.xz file: b'plain te'"),
        ("en.txt.xz", lzma.compress(BODY), 10**6, r"en\.txt\.xz .*1,000,000 .*`about_bytes`"),
        ("en.txt.xz", lzma.compress(BODY)[:-20], None, "damaged"),
        ("en.txt.gz", gzip.compress(BODY)[:-3], None, "damaged"),
        ("v1/en.txt.gz", gzip.compress(BODY)[:-3], None, "damaged"),
        ("en.txt.bz2", bz2.compress(BODY)[:-9], None, "damaged"),
        ("en.zip", b"PK\3\4 cut", None, "damaged"),
        ("en.tar.gz", gzip.compress(b"no tar at all" * 100), None, "damaged"),
        ("part.parquet", b"PAR1 and no more", None, "damaged"),
        ("part.parquet", damaged_inside("snappy"), None, "damaged"),
        ("part.parquet", damaged_inside("zstd"), None, "damaged"),
        ("lines.txt", b"too short", 1000, r"lines\.txt .* 1,000 .* 9\b.*`about_bytes`"),
    ],
)
def test_what_no_hash_vouches_for_is_looked_at_before_its_hash_is_recorded(there, dest, waits, name, body, about, why):
    there.body = body
    dest = dest.parent / name
    with pytest.raises(NetworkError, match=why):
        get(there, dest, {"name": name, **({"about_bytes": about} if about else {})})
    assert not dest.exists()
    assert not dest.with_name(f"{dest.name}.sha256").exists()


def test_two_jobs_that_want_one_file_fetch_it_once(there, dest):
    jobs = [threading.Thread(target=get, args=(there, dest)) for _ in range(4)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert dest.read_bytes() == BODY
    assert len(there.requests) == 1


def test_progress_is_told(there, dest, caplog, monkeypatch):
    monkeypatch.setattr("crosslign.progress.Pace.due", lambda *_: True)
    caplog.set_level("INFO", logger="crosslign.corpora.sources.url")
    get(there, dest)
    assert "corpus.zip: 0.2 of 0.2 MB" in caplog.messages[-1]
    assert "MB/s, 0 s left" in caplog.messages[-1]
