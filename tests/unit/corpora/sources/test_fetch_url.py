"""Downloads through `fetch_file`, against a server with the failures that networks have."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from crosslign.corpora.fetch import PATIENCE, fetch_file
from crosslign.errors import NetworkError

BODY = bytes(range(256)) * 800
SHA = hashlib.sha256(BODY).hexdigest()
FILE = {"name": "corpus.zip", "sha256": SHA, "bytes": len(BODY)}


def get(site, dest, file=FILE, mirrors=()):
    return fetch_file("demo", {"url": site.url}, file, dest, mirrors)


@pytest.fixture
def dest(tmp_path):
    return tmp_path / "downloads" / "demo" / "corpus.zip"


@pytest.fixture
def there(site):
    site.body = BODY
    return site


def leftovers(dest):
    return sorted(path.name for path in dest.parent.iterdir() if not path.name.endswith(".lock"))


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
    assert "range" not in there.requests[-1]
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
        with pytest.raises(NetworkError, match="expected sha256"):
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


def test_404_is_said_at_once(there, dest, waits):
    there.plan = ["404"]
    with pytest.raises(NetworkError, match="404") as error:
        get(there, dest)
    assert len(there.requests) == 1
    assert not waits
    assert leftovers(dest) == []
    for part in (there.url + "corpus.zip", "0.2 MB", "CROSSLIGN_MIRROR", "demo/corpus.zip", SHA):
        assert part in str(error.value)


def test_503_then_success(there, dest, waits):
    there.plan = ["503", "ok"]
    get(there, dest)
    assert dest.read_bytes() == BODY
    assert len(waits) == 1


def test_a_fault_of_the_server_is_given_half_a_minute(there, dest, waits):
    there.plan = ["500"]
    with pytest.raises(NetworkError, match="500"):
        get(there, dest)
    assert len(there.requests) == PATIENCE.tries
    assert 20 < sum(waits) < 60


def test_a_server_that_wants_to_be_left_alone_is_given_half_an_hour(there, dest, waits):
    there.plan = ["429"]
    with pytest.raises(NetworkError, match="429"):
        get(there, dest)
    assert sum(waits) > 1300


def test_a_server_that_asks_for_longer_than_a_job_can_wait_is_not_waited_for(there, dest, waits):
    there.plan, there.retry_after = ["429"], "86400"
    with pytest.raises(NetworkError, match="429"):
        get(there, dest)
    assert not waits


def test_403_is_waited_out_where_the_publisher_is_known_to_turn_away_so(there, dest, waits):
    there.plan = ["403", "403", "ok"]
    fetch_file("demo", {"url": there.url, "connections": 1}, FILE, dest, [])
    assert dest.read_bytes() == BODY
    assert min(waits) >= 45
    dest.unlink()
    there.plan = ["403"]
    with pytest.raises(NetworkError, match=r"403.*register"):
        get(there, dest)
    assert len(waits) == 2


def test_one_connection_at_a_time_where_the_source_says_so(there, tmp_path):
    there.pause = 0.05
    files = [{**FILE, "name": f"{number}.zip"} for number in range(5)]
    source = {"url": there.url, "connections": 1}
    jobs = [
        threading.Thread(target=fetch_file, args=("demo", source, file, tmp_path / "downloads" / "demo" / file["name"], []))
        for file in files
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(there.requests) == 5
    assert there.most == 1


def test_further_addresses_are_asked_in_turn(there, dest, waits):
    there.plan = ["404", "wrong", "wrong", "wrong", "ok"]
    fetch_file("demo", {"url": there.url, "urls": [there.url + "other/", there.url + "whole/copy.zip"]}, FILE, dest, [])
    assert dest.read_bytes() == BODY
    asked = [request["path"] for request in there.requests]
    assert asked == ["/data/corpus.zip", *["/data/other/corpus.zip"] * 3, "/data/whole/copy.zip"]


def test_an_address_that_wants_to_be_left_alone_is_waited_for_only_where_no_other_has_the_file(there, dest, waits):
    source = {"url": there.url, "urls": [there.url + "b/"]}
    there.plan, there.retry_after = ["429", "ok"], "3600"
    fetch_file("demo", source, FILE, dest, [])
    assert dest.read_bytes() == BODY
    assert waits == []
    dest.unlink()
    there.requests.clear()
    there.plan = ["429", "404", "429", "ok"]
    fetch_file("demo", source, FILE, dest, [])
    assert [request["path"].split("/")[2] for request in there.requests] == ["corpus.zip", "b", "corpus.zip", "corpus.zip"]
    assert waits == [3600]


def test_where_no_address_has_it_each_is_named_with_its_reason(there, dest, waits):
    there.plan = ["404", "403"]
    with pytest.raises(NetworkError, match=r"none of 2 addresses.*data/corpus\.zip: the server answered 404.*b/corpus\.zip: .*403"):
        fetch_file("demo", {"url": there.url, "urls": [there.url + "b/"]}, FILE, dest, [])


@pytest.mark.parametrize(("said", "low", "high"), [("7", 7, 7), ("3600", 3600, 3600), ("soon", 45, 90)])
def test_retry_after_is_obeyed(there, dest, waits, said, low, high):
    there.plan, there.retry_after = ["429", "ok"], said
    get(there, dest)
    assert low <= waits[0] <= high


def test_retry_after_may_be_a_date(there, dest, waits):
    there.plan, there.retry_after = ["503", "ok"], format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    get(there, dest)
    assert 30 < waits[0] <= 40


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
    with pytest.raises(NetworkError, match=r"expected 999 bytes, found 204,800"):
        get(there, dest, {"name": "corpus.zip", "bytes": 999})


@pytest.mark.parametrize("file", [FILE, {"name": "corpus.zip"}])
def test_a_web_page_is_found_whether_or_not_a_hash_is_known(there, dest, file):
    there.plan = ["html"]
    with pytest.raises(NetworkError, match=r"web page.*sign in"):
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


@pytest.mark.parametrize(
    ("name", "body", "about", "why"),
    [
        ("en.txt.xz", b"<!DOCTYPE html>\n<html>" + b" " * 1500, 82_000_000_000, "web page"),
        ("en.txt.xz", b"plain text", None, "does not begin as a .xz"),
        ("en.txt.xz", lzma.compress(BODY), 10**6, "expected about 1,000,000 bytes"),
        ("en.txt.xz", lzma.compress(BODY)[:-20], None, "damaged"),
        ("en.txt.gz", gzip.compress(BODY)[:-3], None, "damaged"),
        ("en.txt.bz2", bz2.compress(BODY)[:-9], None, "damaged"),
        ("en.zip", b"PK\3\4 cut", None, "damaged"),
        ("en.tar.gz", gzip.compress(b"no tar at all" * 100), None, "damaged"),
        ("part.parquet", b"PAR1 and no more", None, "damaged"),
        ("lines.txt", b"too short", 1000, "expected about 1,000 bytes, found 9"),
    ],
)
def test_what_no_hash_vouches_for_is_looked_at_before_its_hash_is_recorded(there, dest, waits, name, body, about, why):
    there.body = body
    dest = dest.with_name(name)
    with pytest.raises(NetworkError, match=why):
        get(there, dest, {"name": name, **({"about_bytes": about} if about else {})})
    assert not dest.exists()
    assert not dest.with_name(f"{name}.sha256").exists()


def test_two_jobs_that_want_one_file_fetch_it_once(there, dest):
    jobs = [threading.Thread(target=get, args=(there, dest)) for _ in range(4)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert dest.read_bytes() == BODY
    assert len(there.requests) == 1


def test_the_offline_switch_forbids_the_network(there, dest, waits, monkeypatch):
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    with pytest.raises(NetworkError, match=r"corpus\.zip .*is missing") as error:
        get(there, dest)
    assert "CROSSLIGN_OFFLINE=1" in str(error.value)
    assert not there.requests
    assert not waits


def test_no_server_says_what_is_missing_and_how_a_mirror_helps(dest, waits):
    with pytest.raises(NetworkError, match="ConnectError") as error:
        fetch_file("demo", {"url": "http://127.0.0.1:9/"}, FILE, dest, [])
    for part in ("corpus.zip (0.2 MB) is missing", "CROSSLIGN_MIRROR", "mirror:", "demo/corpus.zip"):
        assert part in str(error.value)
    assert len(waits) == PATIENCE.tries - 1


def test_progress_is_told(there, dest, caplog, monkeypatch):
    monkeypatch.setattr("crosslign.progress.Pace.due", lambda *_: True)
    caplog.set_level("INFO", logger="crosslign.corpora.sources.url")
    get(there, dest)
    assert "corpus.zip: 0.2 of 0.2 MB" in caplog.messages[-1]
    assert "MB/s, 0 s left" in caplog.messages[-1]
