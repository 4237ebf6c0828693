"""Servers that do not keep to the rules of HTTP: no file is put together of two, cut, or stored in its packing."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import time
import zlib

import pytest

from crosslign.corpora.fetch import fetch_file
from crosslign.corpora.sources._pages import is_page
from crosslign.errors import NetworkError, ResourceError

OLD, NEW = b"old " * 500, b"new " * 500
FILE = {"name": "mine.txt"}


@pytest.fixture
def dest(tmp_path):
    return tmp_path / "mine.txt"


def get(site, dest, file=FILE):
    return fetch_file("demo", {"url": site.url}, file, dest, ())


def whole(body, **headers):
    return 200, {"ETag": '"old"', "Content_Length": str(len(body)), **headers}, body


def broken(body, sent, **headers):
    return 200, {"ETag": '"old"', "Content_Length": str(len(body)), **headers}, body[:sent]


def span(body, start, end, **headers):
    headers = {"Content_Length": str(end - start), "Content_Range": f"bytes {start}-{end - 1}/{len(body)}", **headers}
    return 206, headers, body[start:end]


@pytest.mark.parametrize(
    ("begun", "other"),
    [
        ({}, {"ETag": '"new"'}),
        ({"ETag": "", "Last_Modified": "Sat, 01 Jan 2022 00:00:00 GMT"}, {"Last_Modified": "Sun, 02 Jan 2022 00:00:00 GMT"}),
    ],
)
def test_a_range_of_another_file_is_not_joined_to_the_first(site, dest, waits, begun, other):
    site.answers = [broken(OLD, 800, **begun), span(NEW, 800, 2000, **other), whole(NEW)]
    get(site, dest)
    assert dest.read_bytes() == NEW
    assert [request.get("range") for request in site.requests] == [None, "bytes=800-", None, "bytes=0-5"]


def test_a_range_of_a_file_of_another_length_is_not_joined_either(site, dest, waits):
    site.answers = [broken(OLD, 800), span(NEW * 2, 800, 4000), whole(NEW)]
    get(site, dest)
    assert dest.read_bytes() == NEW


def test_a_range_that_does_not_say_its_version_again_is_joined_only_where_the_whole_is_verified(site, dest, waits):
    """Golden: RFC 9110, 15.3.7: a 206 repeats the ETag of the 200; a server without that may have ignored `If-Range`."""
    site.answers = [broken(OLD, 800), span(NEW, 800, 2000), whole(NEW)]
    get(site, dest)
    assert dest.read_bytes() == NEW
    site.requests.clear()
    site.answers = [broken(OLD, 800), span(OLD, 800, 2000)]
    get(site, dest.with_name("verified.txt"), {"name": "verified.txt", "sha256": hashlib.sha256(OLD).hexdigest()})
    assert len(site.requests) == 2


def test_ranges_that_a_server_cuts_short_are_asked_for_until_all_is_there(site, dest, waits):
    site.answers = [broken(OLD, 800), *(span(OLD, start, start + 400, ETag='"old"') for start in (800, 1200, 1600))]
    get(site, dest)
    assert dest.read_bytes() == OLD
    assert [request.get("range") for request in site.requests[1:]] == ["bytes=800-", "bytes=1200-", "bytes=1600-"]


def test_a_part_that_nobody_asked_for_is_not_the_file(site, dest, waits):
    site.answers = [span(OLD, 0, 400, ETag='"old"'), span(OLD, 400, 2000, ETag='"old"')]
    get(site, dest)
    assert dest.read_bytes() == OLD


@pytest.mark.parametrize("name", ["mine.txt", "mine.tsv"])
def test_a_packed_transfer_is_unpacked(site, dest, waits, name):
    packed = gzip.compress(OLD)
    site.answers = [whole(packed, Content_Encoding="gzip")]
    get(site, dest, {"name": name})
    assert dest.read_bytes() == OLD


def test_a_packed_transfer_that_broke_is_begun_again(site, dest, waits):
    packed = gzip.compress(bytes(range(256)) * 40)
    site.answers = [broken(packed, 100, Content_Encoding="gzip"), whole(packed, Content_Encoding="gzip")]
    get(site, dest)
    assert dest.read_bytes() == bytes(range(256)) * 40
    assert "range" not in site.requests[1]


@pytest.mark.parametrize("length", ["", "90"])
@pytest.mark.parametrize("packing", ["gzip", "deflate", "raw deflate"])
def test_a_packed_transfer_that_is_cut_is_no_whole_one_though_nobody_says_its_length(site, dest, waits, packing, length):
    form = {"gzip": 31, "deflate": 15, "raw deflate": -15}[packing]
    packed = zlib.compressobj(9, zlib.DEFLATED, form)
    body = packed.compress(bytes(range(256)) * 40) + packed.flush()
    said = {"Content_Encoding": packing.removeprefix("raw ")}
    site.answers = [whole(body[:90], **said, Content_Length=length), whole(body, **said)]
    get(site, dest)
    assert dest.read_bytes() == bytes(range(256)) * 40


def test_a_packed_transfer_may_be_of_several_streams_and_must_be_one(site, dest, waits):
    site.answers = [whole(OLD, Content_Encoding="gzip"), whole(gzip.compress(OLD) + gzip.compress(NEW) + b"\0\0", Content_Encoding="gzip")]
    get(site, dest)
    assert dest.read_bytes() == OLD + NEW


@pytest.mark.parametrize("packing", ["gzip", "x-gzip"])
def test_of_a_packed_file_servers_say_that_the_transfer_is_packed(site, tmp_path, waits, packing):
    packed = gzip.compress(bytes(range(256)) * 40)
    site.answers = [broken(packed, 100, Content_Encoding=packing), span(packed, 100, len(packed), ETag='"old"', Content_Encoding=packing)]
    get(site, tmp_path / "mine.txt.gz", {"name": "mine.txt.gz"})
    assert (tmp_path / "mine.txt.gz").read_bytes() == packed


@pytest.mark.parametrize("said", ["x-bzip2", "xz", "zstd", "utf-8", "none", "binary", "aws-chunked", "compress"])
@pytest.mark.parametrize("name", ["mine.txt", "mine.txt.bz2"])
def test_a_word_of_the_servers_for_a_packing_that_is_none_changes_nothing(site, dest, waits, said, name):
    body = bz2.compress(OLD) if name.endswith(".bz2") else OLD
    site.answers = [whole(body, Content_Encoding=said)]
    get(site, dest.with_name(name), {"name": name})
    assert dest.with_name(name).read_bytes() == body


def test_a_packing_that_cannot_be_undone_is_named_where_the_bytes_are_no_text(site, dest, waits):
    packed = b"\x1f\x9d\x90" + bytes(range(128, 256))
    site.answers = [whole(packed, Content_Encoding="compress")]
    with pytest.raises(NetworkError, match=r"mine\.txt .*'compress'"):
        get(site, dest)
    assert not dest.exists()
    get(site, dest, {**FILE, "sha256": hashlib.sha256(packed).hexdigest()})
    assert dest.read_bytes() == packed


@pytest.mark.parametrize("more", [{}, {"sha256": hashlib.sha256(gzip.compress(OLD, mtime=0)).hexdigest()}])
def test_a_packed_file_may_be_packed_once_more_on_the_way(site, dest, waits, more):
    inner = gzip.compress(OLD, mtime=0)
    outer = gzip.compress(inner)
    site.answers = [broken(outer, 40, Content_Encoding="gzip"), whole(outer, Content_Encoding="gzip")]
    get(site, dest.with_name("mine.txt.gz"), {"name": "mine.txt.gz", **more})
    assert dest.with_name("mine.txt.gz").read_bytes() == inner
    assert "range" not in site.requests[1]


def test_an_empty_answer_is_no_file(site, dest, waits):
    site.answers = [whole(b""), whole(b""), whole(OLD)]
    get(site, dest, {**FILE, "about_bytes": 2000})
    assert dest.read_bytes() == OLD


def test_a_web_page_is_known_by_any_spelling(site, dest, waits):
    site.answers = [whole(b"<HTML>", Content_Type="Text/HTML; charset=utf-8")]
    with pytest.raises(NetworkError, match=r"mine\.txt .*page"):
        get(site, dest)


@pytest.mark.parametrize(
    ("body", "called"),
    [
        (b"\xef\xbb\xbf<!DOCTYPE html><html>", "application/octet-stream"),
        ("\ufeff<html>Anmelden</html>".encode("utf-16-le"), "application/octet-stream"),
        (b"<title>Moved</title>", "application/octet-stream"),
        (b"<!-- " + b"licence " * 1000 + b"-->\n<html>", "text/plain"),
        (b'{"error": "no such record"}', "application/json; charset=utf-8"),
        (b'<?xml version="1.0"?>\n<Error>\n<Code>NoSuchKey</Code></Error>', "application/xml"),
    ],
)
def test_a_page_or_a_message_in_place_of_plain_text_is_told(site, dest, waits, body, called):
    site.answers = [whole(body, Content_Type=called)]
    with pytest.raises(NetworkError, match=r"(page|message) .*mine\.txt") as error:
        get(site, dest)
    assert "\n" not in str(error.value)
    assert not dest.with_name("mine.txt.sha256").exists()


def test_comments_without_end_are_looked_at_once():
    assert not is_page(b"<!---->" * 2000 + b"text")
    assert is_page(b"<!---->\n" * 2000 + b"<html>")


def test_text_that_only_looks_like_a_message_is_text(site, dest, waits):
    site.answers = [whole(b'{"a": 1}\n', Content_Type="text/plain")]
    get(site, dest)
    assert dest.read_bytes() == b'{"a": 1}\n'


@pytest.mark.parametrize(("status", "least"), [(520, 0.5), (524, 0.5), (509, 30.0), (529, 30.0)])
def test_faults_of_hosts_in_front_are_waited_out(site, dest, waits, status, least):
    site.answers = [(status, {"Content_Length": "0"}, b""), whole(OLD)]
    get(site, dest)
    assert dest.read_bytes() == OLD
    assert least <= waits[0]


def test_a_file_that_its_server_makes_ready_first_is_waited_for(site, dest, waits):
    site.answers = [(202, {"Content_Length": "0", "Retry_After": "120"}, b""), whole(OLD)]
    get(site, dest)
    assert dest.read_bytes() == OLD
    assert waits == [120]


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry_After": "1800.5"},
        {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": "{now}"},
        {"RateLimit": '"resolvers";r=0;t=1800'},
    ],
)
def test_a_wait_is_obeyed_in_every_form_in_which_it_is_asked_for(site, dest, waits, headers):
    said = {name: value.replace("{now}", str(int(time.time()) + 1801)) for name, value in headers.items()}
    site.answers = [(429, {"Content_Length": "0", **said}, b""), whole(OLD)]
    get(site, dest)
    assert 1200 <= waits[0] <= 1801


@pytest.mark.parametrize(
    "headers", [{"Retry_After": "Sat, 01 Jan 2022 00:00:00 GMT"}, {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": "1641000000"}]
)
def test_where_the_moment_has_passed_the_usual_wait_holds(site, dest, waits, headers):
    site.answers = [(429, {"Content_Length": "0", **headers}, b""), whole(OLD)]
    get(site, dest)
    assert 45 <= waits[0] <= 90


def test_a_host_that_a_redirect_leads_to_is_the_one_that_is_named(site, dest, waits):
    site.answers = [(302, {"Location": "http://moved.invalid/mine.txt", "Content_Length": "0"}, b"")]
    with pytest.raises(NetworkError, match=r"mine\.txt: .*moved\.invalid .*ConnectError"):
        get(site, dest)


def test_a_file_of_another_length_is_refused_before_it_comes(site, dest, waits):
    site.answers = [whole(OLD)]
    with pytest.raises(NetworkError, match=r"mine\.txt .*999 .*2,000"):
        get(site, dest, {"name": "mine.txt", "bytes": 999})
    assert not dest.with_name(".mine.txt.wrong").exists()


def test_a_file_that_the_disk_cannot_hold_is_not_begun(site, dest, waits):
    site.answers = [(200, {"Content_Length": str(10**18)}, OLD)]
    with pytest.raises(ResourceError, match=r"\.mine\.txt\.download: .*1,000,000,000,000,000,000"):
        get(site, dest)
    assert len(site.requests) == 1
    assert not dest.exists()
