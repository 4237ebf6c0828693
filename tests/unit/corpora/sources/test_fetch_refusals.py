"""Downloads from servers that refuse, are busy, or are not there: how often and how long they are asked, and what is said."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from one_file import BODY, FILE, SHA, get, leftovers

from crosslign.corpora.fetch import PATIENCE, fetch_file
from crosslign.errors import NetworkError


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
    there.plan = ["429", "404", "ok"]
    fetch_file("demo", source, FILE, dest, [])
    assert [request["path"].split("/")[2] for request in there.requests] == ["corpus.zip", "b", "corpus.zip"]
    assert waits == [3600]


def test_wrong_bytes_of_a_further_address_are_said_to_be_its_own(there, dest, waits):
    there.plan = ["404", "wrong"]
    with pytest.raises(NetworkError, match=rf"404.*{there.url}more/corpus.zip: expected sha256"):
        fetch_file("demo", {"url": f"{there.url}first/", "urls": [f"{there.url}more/"]}, FILE, dest, [])


def test_where_no_address_has_it_each_is_named_with_its_reason(there, dest, waits):
    there.plan = ["404", "403"]
    with pytest.raises(NetworkError, match=r" 2 .*data/corpus\.zip: .* 404.*b/corpus\.zip: .*403"):
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


def test_the_offline_switch_forbids_the_network(there, dest, waits, monkeypatch):
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    with pytest.raises(NetworkError, match=r"corpus\.zip .*0\.2 MB") as error:
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
