"""Text that nothing vouches for comes whole, also from servers that do not say how long it is, or say so wrongly."""

from __future__ import annotations

import pytest

from crosslign.corpora.fetch import fetch_file
from crosslign.errors import NetworkError

TEXT = b"".join(b"line %d\n" % number for number in range(9000))
CUT = TEXT[:40000]


@pytest.fixture(params=["mine.txt", "mine.json"])
def dest(request, tmp_path):
    return tmp_path / request.param


def get(site, dest, **more):
    return fetch_file("demo", {"url": site.url}, {"name": dest.name, **more}, dest, ())


def part(start=0, end=1):
    return 206, {"Content_Range": f"bytes {start}-{end - 1}/{len(TEXT)}"}, TEXT[start:end]


def unsaid(body, **headers):
    return 200, headers, body


def said(body):
    return 200, {"Content_Length": str(len(body))}, body


@pytest.mark.parametrize("cut", [unsaid(CUT), said(CUT)])
@pytest.mark.parametrize("again", [part(), said(TEXT), unsaid(TEXT)])
def test_a_text_that_was_cut_comes_again(site, dest, waits, cut, again):
    site.answers = [cut, again, unsaid(TEXT), part()]
    get(site, dest)
    assert dest.read_bytes() == TEXT
    assert [request.get("range") for request in site.requests] == [None, "bytes=0-5", None, "bytes=0-5"]


def test_what_came_of_it_is_gone_on_with_where_its_version_is_known(site, dest, waits):
    rest = (206, {"Content_Range": f"bytes 40000-{len(TEXT) - 1}/{len(TEXT)}", "ETag": '"1"'}, TEXT[40000:])
    site.answers = [unsaid(CUT, ETag='"1"'), part(), rest]
    get(site, dest)
    assert dest.read_bytes() == TEXT
    assert [request.get("range") for request in site.requests] == [None, "bytes=0-5", "bytes=40000-"]


def test_a_text_that_is_always_cut_is_never_accepted(site, dest, waits):
    site.answers = [answer for _ in range(6) for answer in (unsaid(CUT), part())]
    with pytest.raises(NetworkError, match=rf"mine\.\w+ .*40,000 .*{len(TEXT):,} "):
        get(site, dest)
    assert not dest.exists()
    assert not dest.with_name(f"{dest.name}.sha256").exists()


@pytest.mark.parametrize("more", [unsaid(TEXT), said(TEXT), (403, {}, b""), (416, {}, b""), (404, {}, b"")])
def test_servers_without_ranges_or_lengths_serve_all_the_same(site, dest, waits, more):
    site.answers = [unsaid(TEXT), more]
    get(site, dest)
    assert dest.read_bytes() == TEXT
    assert not waits


@pytest.mark.parametrize(("answer", "known"), [(unsaid(TEXT), {"bytes": len(TEXT)}), (said(TEXT), {"bytes": len(TEXT)})])
def test_what_the_catalog_vouches_for_is_asked_for_once(site, dest, waits, answer, known):
    site.answers = [answer]
    get(site, dest, **known)
    assert len(site.requests) == 1


def test_chunks_that_end_vouch_for_themselves(site, dest, waits):
    size = f"{len(TEXT):x}\r\n".encode()
    site.answers = [
        (200, {"Transfer_Encoding": "chunked"}, size + CUT),
        (200, {"Transfer_Encoding": "chunked"}, size + TEXT + b"\r\n0\r\n\r\n"),
    ]
    get(site, dest)
    assert dest.read_bytes() == TEXT
    assert len(site.requests) == 2
