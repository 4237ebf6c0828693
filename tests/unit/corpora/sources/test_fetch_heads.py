"""Beginnings of large files: so many bytes of them come, whole lines are read, and lineage has the size of the whole."""

from __future__ import annotations

import hashlib
import lzma

import pytest

from crosslign.corpora.archives import open_stream
from crosslign.corpora.fetch import Patience, fetch_file
from crosslign.corpora.loopback import Publishers, serving
from crosslign.corpora.readers.text_lines import read
from crosslign.errors import InputError, NetworkError

LINES = [f"{hashlib.sha256(str(n).encode()).hexdigest()} é{n}" for n in range(4000)]
WHOLE = lzma.compress("".join(f"{line}\n" for line in LINES).encode())
HEAD = 100_000
FILE = {"name": "head100kB-en.txt.xz", "of": "en.txt.xz", "path": "en.txt.xz", "bytes": HEAD, "head": HEAD, "about_bytes": len(WHOLE)}
QUICK = Patience(tries=12, first_s=0.02, busy_s=0.02, longest_s=0.3)


@pytest.fixture
def dest(tmp_path):
    return tmp_path / "downloads" / "web" / FILE["name"]


def get(address, dest, mirrors=(), file=FILE):
    return fetch_file("web", {"url": address}, file, dest, mirrors, QUICK)


def texts(path):
    return [text for table in read({path.name: path}, "web_en", ["en"]) for text in table["text"].to_pylist()]


def test_so_many_bytes_come_and_lineage_knows_the_whole(online, dest):
    with serving(Publishers({"/en.txt.xz": WHOLE}, 0.0, 1)) as server:
        facts = get(server.address, dest)
        assert get(server.address, dest) == facts
        assert server.requests == 1
    assert dest.read_bytes() == WHOLE[:HEAD]
    assert facts["whole_bytes"] == len(WHOLE)
    assert (facts["bytes"], facts["recorded"]) == (HEAD, True)
    assert facts["sha256"] == hashlib.sha256(WHOLE[:HEAD]).hexdigest()


def test_what_is_read_are_the_first_lines_each_of_them_whole(online, dest):
    with serving(Publishers({"/en.txt.xz": WHOLE}, 0.0, 1)) as server:
        get(server.address, dest)
    found = texts(dest)
    assert 0 < len(found) < len(LINES)
    assert found == LINES[: len(found)]


def test_a_server_without_ranges_is_left_when_enough_has_come(site, dest):
    site.body, site.plan = WHOLE, ["norange"]
    assert get(site.url, dest)["whole_bytes"] == len(WHOLE)
    assert dest.read_bytes() == WHOLE[:HEAD]


@pytest.mark.parametrize(
    "refusal",
    [
        (403, {}, b""),
        (400, {}, b""),
        (501, {}, b""),
        (416, {}, b""),
        (416, {"Content_Range": f"bytes */{len(WHOLE)}"}, b""),
        (206, {"Content_Length": str(HEAD)}, WHOLE[:HEAD]),
    ],
)
def test_a_server_that_refuses_ranges_is_asked_without(site, dest, refusal):
    site.answers = [refusal, (200, {"Content_Length": str(len(WHOLE))}, WHOLE)]
    assert get(site.url, dest)["whole_bytes"] == len(WHOLE)
    assert dest.read_bytes() == WHOLE[:HEAD]
    assert ["range" in request for request in site.requests] == [True, False]


def test_a_host_that_turns_away_who_asks_too_often_is_waited_for_and_not_asked_without_a_range(site, dest, waits):
    site.answers = [(403, {"Retry_After": "7"}, b""), (206, {"Content_Range": f"bytes 0-{HEAD - 1}/{len(WHOLE)}"}, WHOLE[:HEAD])]
    get(site.url, dest)
    assert ["range" in request for request in site.requests] == [True, True]
    assert waits == [7]


@pytest.mark.parametrize("seed", range(3))
def test_a_beginning_that_broke_off_is_gone_on_with(online, dest, seed):
    with serving(Publishers({"/en.txt.xz": WHOLE}, 0.8, seed)) as server:
        get(server.address, dest)
    assert dest.read_bytes() == WHOLE[:HEAD]


def test_a_mirror_of_the_whole_file_gives_the_same(tmp_path, dest):
    folder = tmp_path / "mirror" / "web"
    folder.mkdir(parents=True)
    (folder / "en.txt.xz").write_bytes(WHOLE)
    facts = get("http://127.0.0.1:9", dest, [tmp_path / "mirror"])
    assert dest.read_bytes() == WHOLE[:HEAD]
    assert facts["whole_bytes"] == len(WHOLE)


def test_another_file_than_the_catalogs_is_refused_by_the_size_of_the_whole(online, dest):
    with (
        serving(Publishers({"/en.txt.xz": WHOLE}, 0.0, 1)) as server,
        pytest.raises(NetworkError, match=r"head100kB-en\.txt\.xz .*1,384,240.*138,424"),
    ):
        get(server.address, dest, file={**FILE, "about_bytes": 10 * len(WHOLE)})
    assert not dest.exists()


def test_damage_inside_a_beginning_is_told(tmp_path):
    path = tmp_path / FILE["name"]
    path.write_bytes(WHOLE[:50_000] + bytes(2000) + WHOLE[52_000:HEAD])
    with open_stream(path) as stream, pytest.raises(InputError, match="damaged"):
        stream.read()


def test_a_cut_file_that_is_no_beginning_is_damaged_as_before(tmp_path):
    path = tmp_path / "en.txt.xz"
    path.write_bytes(WHOLE[:HEAD])
    with pytest.raises(InputError, match=r"en\.txt\.xz: .*; the file.*byte 0 "):
        texts(path)


def test_plain_text_ends_at_its_last_whole_line_too(tmp_path):
    path = tmp_path / "head1kB-en.txt"
    path.write_text("one\ntwo\nthr", encoding="utf-8")
    assert texts(path) == ["one", "two"]
