"""OPUS: what its catalogue knows by name, what its API answers, and bytes that survive a broken line."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from crosslign.config.catalog import SOURCE_KINDS, describe
from crosslign.corpora import SOURCES
from crosslign.corpora.fetch import fetch_file
from crosslign.corpora.sources import opus
from crosslign.errors import InputError, NetworkError

SOURCE = {"opus": "ParaCrawl", "version": "v9", "licence": "CC0-1.0"}


def test_every_kind_of_source_has_a_module():
    assert sorted(SOURCE_KINDS) == SOURCES.names()


@pytest.mark.parametrize(
    ("corpus", "version", "name", "address"),
    [
        ("ParaCrawl", "v9", "en-sw.txt.zip", "OPUS-ParaCrawl/v9/moses/en-sw.txt.zip"),
        ("ParaCrawl", "v9", "en-sw.tmx.gz", "OPUS-ParaCrawl/v9/tmx/en-sw.tmx.gz"),
        ("ParaCrawl", "latest", "en-fr.txt.zip", "OPUS-ParaCrawl/v9/moses/en-fr.txt.zip"),
        ("UNPC", "v1.0", "en-zh.txt.zip", "OPUS-UNPC/v1.0/moses/en-zh.txt.zip"),
        ("CCAligned", "v1", "en-zh_CN.txt.zip", "OPUS-CCAligned/v1/moses/en-zh_CN.txt.zip"),
        ("CCMatrix", "v1", "af-en.txt.zip", "OPUS-CCMatrix/v1/moses/af-en.txt.zip"),
        ("News-Commentary", "latest", "ja-pt.txt.zip", "OPUS-News-Commentary/v16/moses/pt-ja.txt.zip"),
        ("PHP", "v1", "zh-zh_TW.tmx.gz", "OPUS-PHP/v1/tmx/zh_TW-zh.tmx.gz"),
        ("Tatoeba", "v2022-03-03", "cmn-en.txt.zip", "OPUS-Tatoeba/v2022-03-03/moses/cmn-en.txt.zip"),
    ],
)
def test_the_catalogue_knows_the_address(corpus, version, name, address):
    assert opus.find({"opus": corpus, "version": version}, {"name": name}) == f"https://object.pouta.csc.fi/{address}"


@pytest.mark.parametrize(
    ("corpus", "version", "name", "message"),
    [
        ("ParaCrawl", "v99", "en-fr.txt.zip", r"opus:ParaCrawl/v99/.*v9.*'v9'"),
        ("ParaCrawl", "v9", "en-xx.txt.zip", r"opus:ParaCrawl/v9/en-xx\.txt\.zip: .*en-pt, .*'en-zh'"),
        ("NoSuchCrawl", "v1", "en-fr.txt.zip", r"opus:NoSuchCrawl.*ParaCrawl, CCMatrix"),
        ("ParaCrawl", "v9", "en-fr.csv", r"opus:ParaCrawl: 'en-fr\.csv'.*en-fr\.txt\.zip"),
        ("ParaCrawl' OR '1'='1", "v9", "en-fr.txt.zip", r"opus:ParaCrawl'.*ParaCrawl, CCMatrix"),
    ],
)
def test_what_opus_has_not_is_named_with_what_it_has(corpus, version, name, message, monkeypatch):
    monkeypatch.setattr(opus, "asked", lambda query, api: [])
    with pytest.raises(InputError, match=message):
        opus.find({"opus": corpus, "version": version}, {"name": name})


class _Opus(BaseHTTPRequestHandler):
    """An OPUS API, and the store that its addresses lead to; the store drops the line once in mid-file."""

    body: bytes
    said: list
    status: int

    def log_message(self, *args):
        pass

    def do_GET(self):
        asked = urlsplit(self.path)
        type(self).said.append((asked.path, {key: value[0] for key, value in parse_qs(asked.query).items()}, self.headers.get("Range")))
        if asked.path == "/opusapi":
            host = self.headers["Host"]
            known = {"corpus": "Mine", "version": "v3", "source": "de", "target": "en", "preprocessing": "moses"}
            query = self.said[-1][1]
            rows = [{**known, "size": 1, "url": f"http://{host}/OPUS-Mine/v3/moses/de-en.txt.zip"}] if query == known else []
            body = json.dumps({"corpora": rows}).encode() if self.status == 200 else b"busy"
            self.send_response(self.status)
            self.end_headers()
            self.wfile.write(body)
            return
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        self.send_response(206 if start else 200)
        self.send_header("ETag", '"a"')
        self.send_header("Content-Length", str(len(self.body) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(self.body) - 1}/{len(self.body)}")
        self.end_headers()
        self.wfile.write(self.body[start:] if start else self.body[:5000])


def packed(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("Mine.de-en.de", content)
    return file.getvalue()


@pytest.fixture
def server():
    handler = type("Handler", (_Opus,), {"body": packed(bytes(range(256)) * 50), "said": [], "status": 200})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    handler.api = f"http://127.0.0.1:{server.server_port}/opusapi"
    yield handler
    server.shutdown()
    server.server_close()


def test_the_api_is_asked_and_the_bytes_are_resumed(server, tmp_path, waits):
    source = {"opus": "Mine", "version": "v3", "api": server.api}
    facts = fetch_file("mine", source, {"name": "de-en.txt.zip"}, tmp_path / "de-en.txt.zip", [])
    assert (tmp_path / "de-en.txt.zip").read_bytes() == server.body
    assert facts["sha256"] == hashlib.sha256(server.body).hexdigest()
    assert facts["recorded"]
    ranges = [said[2] for said in server.said if said[0] != "/opusapi"]
    assert ranges == [None, "bytes=5000-"]
    assert len(waits) == 1


def test_what_the_catalogue_lacks_is_asked_of_the_api(server, monkeypatch):
    monkeypatch.setattr(opus, "API", server.api)
    address = opus.find({"opus": "Mine", "version": "v3"}, {"name": "en-de.txt.zip"})
    assert address.endswith("/OPUS-Mine/v3/moses/de-en.txt.zip")
    with pytest.raises(InputError, match=r"opus:Mine.*ParaCrawl, CCMatrix"):
        opus.find({"opus": "Mine", "version": "v4"}, {"name": "en-de.txt.zip"})


def test_a_busy_api_is_tried_again_and_named(server, tmp_path, waits):
    server.status = 503
    source = {"opus": "Mine", "version": "v3", "api": server.api}
    with pytest.raises(NetworkError, match=r"de-en\.txt\.zip.*\b503\b") as error:
        fetch_file("mine", source, {"name": "de-en.txt.zip"}, tmp_path / "de-en.txt.zip", [])
    assert "CROSSLIGN_MIRROR" in str(error.value)
    assert sum(waits) > 1300


def test_an_answer_that_is_none_of_the_api(server, monkeypatch):
    server.status = 404
    with pytest.raises(NetworkError, match=r"opusapi: .*API.*404"):
        opus.find({"opus": "Mine", "version": "v3", "api": server.api}, {"name": "de-en.txt.zip"})


def test_offline_nothing_is_asked(monkeypatch, tmp_path):
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    with pytest.raises(NetworkError, match="CROSSLIGN_OFFLINE=1"):
        fetch_file("pc", SOURCE, {"name": "en-fr.txt.zip"}, tmp_path / "en-fr.txt.zip", [])


def test_names_for_people():
    assert describe(SOURCE, {"name": "en-fr.txt.zip"}) == "opus:ParaCrawl/v9/en-fr.txt.zip"
