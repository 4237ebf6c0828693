"""Downloads through `fetch_file`, against a server with the failures that networks have."""

from __future__ import annotations

import hashlib
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from crosslign.corpora.fetch import LONGEST_WAIT_S, fetch_file
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
    part = dest.with_name(".corpus.zip.download")
    part.write_bytes(BODY)
    part.with_name(part.name + ".state").write_text(f'{{"url": "{there.url}corpus.zip", "validator": "\\"v1\\""}}')
    get(there, dest, {"name": "corpus.zip"})
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


def test_without_any_validator_nothing_is_resumed(there, dest, waits):
    there.etag, there.plan = "", ["drop:1000", "ok"]
    get(there, dest)
    assert "range" not in there.requests[1]
    assert dest.read_bytes() == BODY


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


def test_three_tries_are_all(there, dest, waits):
    there.plan = ["500"]
    with pytest.raises(NetworkError, match="500"):
        get(there, dest)
    assert len(there.requests) == 3
    assert 0 < waits[0] < 2 * waits[1] + 3


@pytest.mark.parametrize(("said", "low", "high"), [("7", 7, 7), ("9999999", LONGEST_WAIT_S, LONGEST_WAIT_S), ("soon", 0.5, 6)])
def test_retry_after_is_obeyed(there, dest, waits, said, low, high):
    there.plan, there.retry_after = ["429", "ok"], said
    get(there, dest)
    assert low <= waits[0] <= high


def test_retry_after_may_be_a_date(there, dest, waits):
    there.plan, there.retry_after = ["503", "ok"], format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    get(there, dest)
    assert 30 < waits[0] <= 40


@pytest.mark.parametrize("act", ["wrong", "html", "short:777"])
def test_wrong_bytes_are_moved_aside_tried_again_and_named(there, dest, waits, act):
    there.plan = [act]
    with pytest.raises(NetworkError) as error:
        get(there, dest)
    found = {"wrong": bytes(len(BODY)), "html": b"<html>sign in</html>", "short:777": BODY[:777]}[act]
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


def test_a_web_page_is_found_where_no_hash_is_known(there, dest):
    there.plan = ["html"]
    with pytest.raises(NetworkError, match="web page"):
        get(there, dest, {"name": "corpus.zip"})
    assert leftovers(dest) == []


def test_a_damaged_file_in_place_is_fetched_anew(there, dest):
    dest.parent.mkdir(parents=True)
    dest.write_bytes(b"half")
    get(there, dest)
    assert dest.read_bytes() == BODY


def test_a_hash_is_recorded_at_the_first_download_and_holds_from_then_on(there, dest, waits):
    facts = get(there, dest, {"name": "corpus.zip"})
    assert facts["sha256"] == SHA
    assert facts["recorded"]
    dest.unlink()
    there.body = BODY[::-1]
    with pytest.raises(NetworkError) as error:
        get(there, dest, {"name": "corpus.zip"})
    record = dest.with_name("corpus.zip.sha256")
    assert SHA in str(error.value)
    assert f"delete {record}" in str(error.value)
    record.unlink()
    assert get(there, dest, {"name": "corpus.zip"})["sha256"] == hashlib.sha256(BODY[::-1]).hexdigest()


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
    assert len(waits) == 2


def test_progress_is_told(there, dest, caplog, monkeypatch):
    monkeypatch.setattr("crosslign.corpora.sources.url.PROGRESS_S", 0.0)
    caplog.set_level("INFO", logger="crosslign.corpora.sources.url")
    get(there, dest)
    assert "corpus.zip: 0.2 of 0.2 MB" in caplog.messages[-1]
    assert "MB/s, 0 s left" in caplog.messages[-1]
