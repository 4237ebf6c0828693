"""Servers that break off, lie, refuse or send something else: the file that the catalog names, or an error that says how to get it."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from crosslign.corpora.fetch import fetch_file
from crosslign.errors import NetworkError, ResourceError

BODY = bytes(range(250)) * 400
SHA = hashlib.sha256(BODY).hexdigest()
FILE = {"name": "corpus.zip", "sha256": SHA, "bytes": len(BODY)}


@pytest.fixture
def there(site):
    site.body = BODY
    return site


@pytest.fixture
def dest(tmp_path):
    return tmp_path / "downloads" / "corpus.zip"


def get(url, dest, file=FILE, mirrors=()):
    return fetch_file("demo_set", {"url": url}, file, dest, list(mirrors))


@pytest.mark.parametrize("plan", [["drop:40000", "ok"], ["short:40000", "ok"], ["drop:1", "drop:30000", "drop:60000", "ok"]])
def test_f05_a_download_that_breaks_off_is_completed(there, dest, waits, plan):
    there.plan = plan
    get(there.url, dest)
    assert dest.read_bytes() == BODY


@pytest.mark.parametrize("plan", [["drop:0"], ["short:40000"]])
def test_f05_a_download_that_never_comes_whole_is_not_accepted(there, dest, waits, plan):
    there.plan = plan
    with pytest.raises(NetworkError, match=r"corpus\.zip"):
        get(there.url, dest)
    assert not dest.exists()


def test_f06_wrong_bytes_of_the_right_length_are_named_and_never_used(there, dest, waits):
    there.plan = ["wrong"]
    with pytest.raises(NetworkError) as error:
        get(there.url, dest)
    wrong = hashlib.sha256(bytes(len(BODY))).hexdigest()
    aside = dest.with_name(".corpus.zip.wrong")
    assert all(part in str(error.value) for part in ("corpus.zip", SHA, wrong, f"kept as {aside}"))
    assert aside.read_bytes() == bytes(len(BODY))
    assert not dest.exists()


@pytest.mark.parametrize("status", [404, 429, 500])
def test_f07_refusals_are_bounded_and_name_the_entry_and_the_mirror(there, dest, waits, status):
    there.plan = [str(status)]
    there.retry_after = "7"
    with pytest.raises(NetworkError, match=rf"corpus\.zip.*{status}.*CROSSLIGN_MIRROR.*demo_set/corpus\.zip"):
        get(there.url, dest)
    assert len(there.requests) == (1 if status == 404 else 6)
    assert waits == [7.0] * (len(there.requests) - 1)


def test_f07_the_mirror_comes_first_and_waits_are_spread(there, dest, waits, tmp_path):
    there.plan = ["503"]
    with pytest.raises(NetworkError):
        get(there.url, dest)
    assert len(set(waits)) == len(waits) == 5
    (tmp_path / "mirror" / "demo_set").mkdir(parents=True)
    (tmp_path / "mirror" / "demo_set" / "corpus.zip").write_bytes(BODY)
    asked = len(there.requests)
    get(there.url, dest, mirrors=[tmp_path / "mirror"])
    assert dest.read_bytes() == BODY
    assert len(there.requests) == asked


def test_f07_a_page_in_place_of_a_file_and_a_loop_of_redirects_are_refused(there, dest, waits):
    there.plan = ["html"]
    with pytest.raises(NetworkError, match=r"page .*corpus\.gz"):
        get(there.url, dest, {"name": "corpus.gz"})
    with (
        serving(lambda link: link.sendall(b"HTTP/1.0 302 Found\r\nLocation: /again\r\n\r\n")) as url,
        pytest.raises(NetworkError, match="TooManyRedirects"),
    ):
        get(url, dest)


class serving:  # noqa: N801
    """A raw server on loopback: `answer` gets each connection after the request came."""

    def __init__(self, answer, context=None):
        self.answer, self.context = answer, context

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.listener.getsockname()[1]}/"

    def __exit__(self, *error):
        self.listener.close()

    def _serve(self):
        while True:
            try:
                link, _ = self.listener.accept()
                link = self.context.wrap_socket(link, server_side=True) if self.context else link
                link.recv(65536)
                self.answer(link)
                link.close()
            except ssl.SSLError:
                continue
            except OSError:
                return


def test_f07_a_server_that_falls_silent_is_given_up(dest, waits, monkeypatch):
    import httpx2

    from crosslign.corpora.sources import _client as module

    monkeypatch.setattr(module, "TIMEOUT", httpx2.Timeout(0.2))
    stop = threading.Event()

    def silent(link):
        link.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 100000\r\n\r\nx")
        stop.wait(5)

    with serving(silent) as url, pytest.raises(NetworkError, match=r"corpus\.zip.*ReadTimeout"):
        get(url, dest)
    stop.set()


def test_f07_a_trickle_that_never_falls_silent_is_given_up_after_six_tries(dest, waits, monkeypatch):
    """A byte now and then keeps every read within its limit, and every try brings a little more than the one before."""
    from crosslign.corpora.sources import url as module

    monkeypatch.setattr(module, "SLOW_S", 0.3)
    monkeypatch.setattr(module, "SLOW_BYTES", 1000)
    tries, stop = [], threading.Event()

    def trickle(link):
        tries.append(link)
        link.sendall(b'HTTP/1.0 200 OK\r\nETag: "1"\r\nContent-Length: 100000\r\n\r\n' + BODY[: 10 * len(tries)])
        with suppress(OSError):
            while not stop.wait(0.05):
                link.sendall(b"x")

    with serving(trickle) as url, pytest.raises(NetworkError, match=r"corpus\.zip .*bytes in \d+ s"):
        get(url, dest)
    stop.set()
    assert len(tries) == 6


def test_f07_a_certificate_that_nobody_signed_is_refused(dest, waits, tmp_path):
    made = subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=localhost",
            "-keyout",
            tmp_path / "k",
            "-out",
            tmp_path / "c",
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c", tmp_path / "k")
    with (
        serving(lambda link: link.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + BODY), context) as url,
        pytest.raises(NetworkError, match=r"(?i)certificate"),
    ):
        get(url, dest)
    assert not dest.exists()


def test_f08_a_server_that_ignores_ranges_doubles_no_byte(there, dest, waits):
    there.plan = ["drop:40000", "norange"]
    get(there.url, dest)
    assert dest.read_bytes() == BODY


def test_f10_a_download_that_the_disk_cannot_hold_is_not_begun(there, tmpfs, waits, tmp_path):
    dest = tmpfs("2m") / "corpus.zip"
    said = r"corpus\.zip: .*8,000,000 bytes .* 2,\d+,\d+ bytes .*crosslign plan"
    with pytest.raises(ResourceError, match=said):
        get(there.url, dest, {"name": "corpus.zip", "bytes": 8_000_000})
    (tmp_path / "demo_set").mkdir()
    with open(tmp_path / "demo_set" / "corpus.zip", "wb") as mirrored:
        mirrored.truncate(8_000_000)
    with pytest.raises(ResourceError, match=said):
        get(there.url, dest, {"name": "corpus.zip"}, [tmp_path])
    assert there.requests == []
    assert not dest.exists()


def test_f10_a_download_that_fills_the_disk_says_so_and_is_gone_on_with(there, tmpfs, waits, monkeypatch):
    """Somebody else takes the space after it was asked for."""
    there.body = bytes(4_000_000)
    disk = tmpfs("2m")
    monkeypatch.setattr("crosslign.corpora.sources.url.require_space", lambda dest, needed: None)
    with pytest.raises(ResourceError, match=r"corpus\.txt.*space.*bytes.*crosslign plan"):
        get(there.url, disk / "corpus.txt", {"name": "corpus.txt"})
    assert not (disk / "corpus.txt").exists()
    subprocess.run(["mount", "-o", "remount,size=9m", str(disk)], check=True)
    get(there.url, disk / "corpus.txt", {"name": "corpus.txt"})
    assert (disk / "corpus.txt").read_bytes() == there.body
    assert there.requests[-1]["range"].startswith("bytes=")


def _fetch(url, dest):
    get(url, dest)


def test_f09_two_processes_that_want_one_file_fetch_it_once(there, dest):
    jobs = [multiprocessing.get_context("spawn").Process(target=_fetch, args=(there.url, dest)) for _ in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(120)
    assert [job.exitcode for job in jobs] == [0, 0]
    assert dest.read_bytes() == BODY
    assert len(there.requests) == 1


def test_f30_where_the_network_is_off_nothing_is_asked(there, dest, monkeypatch):
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    with pytest.raises(NetworkError, match=r"corpus\.zip .*CROSSLIGN_OFFLINE=1"):
        get(there.url, dest)
    assert there.requests == []
    assert "huggingface_hub" not in sys.modules or os.environ.get("HF_HUB_OFFLINE") == "1"
