"""The hub's own client against a server on this machine: its address, token and store, and what stands in its place, end in words."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

BODY, COMMIT = b"text\n" * 100, "0" * 40
ASK = """
import json, os, sys
from pathlib import Path
from crosslign.corpora.fetch import Patience, fetch_file
from crosslign.corpora.sources.hub import fetch
said = {}
def ask(mode, digits, name):
    try:
        fetch({"hub": f"a/{mode}", "repo_type": "dataset", "revision": "0" * digits}, {"name": "a.txt"}, Path(sys.argv[1], name))
        said[name] = [Path(sys.argv[1], name).read_text(), ""]
    except Exception as error:
        said[name] = [type(error).__name__, str(error)]
for mode in sys.argv[3:]:
    ask(mode, 40, mode)
ask("short", 7, "short")
ask("none", 8, "none")
for mode in ("other", "list", "page"):
    ask(mode, 7, mode)
os.environ["CROSSLIGN_OFFLINE"] = "1"
ask("short", 7, "short, offline")
os.environ["CROSSLIGN_OFFLINE"] = "0"
known = {"hub": "a/torn", "repo_type": "dataset", "revision": "0" * 40}
fetch_file("s", known, {"name": "a.txt", "sha256": sys.argv[2]}, Path(sys.argv[1], "s", "a.txt"), (), Patience(first_s=0.01))
said["torn"] = Path(sys.argv[1], "s", "a.txt").read_text()
print(json.dumps(said))
"""
"""The client reads its settings when it is imported, so that it is asked in a process of its own."""


class Hub(BaseHTTPRequestHandler):
    tokens: set[str] = set()  # noqa: RUF012 (one for all requests)
    torn: list[str] = []  # noqa: RUF012

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        status, body, headers = 200, BODY, {"ETag": '"abc"', "X-Repo-Commit": COMMIT}
        if "/resolve/" in self.path:
            self.tokens.add(self.headers.get("Authorization", ""))
        if self.path == f"/api/datasets/a/short/revision/{COMMIT[:7]}":
            body, headers = json.dumps({"id": "a/short", "sha": COMMIT}).encode(), {"Content-Type": "application/json"}
        elif found := re.search("/a/(other|list|page)/revision/", self.path):
            body, headers = (
                {"other": b'{"status": "ok"}', "list": b"[1]", "page": b"<p>hello"}[found[1]],
                {"Content-Type": "application/json"},
            )
        elif "/revision/" in self.path or f"/resolve/{COMMIT[:7]}/" in self.path:
            status, body, headers = 404, b"", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}
        elif "/gated/" in self.path:
            status, body, headers = 403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
        elif "/portal/" in self.path:
            body, headers = b"<html><body>sign in</body></html>", {"Content-Type": "text/html"}
        elif "/signin/" in self.path:
            status, body, headers = 511, b"", {}
        elif "/torn/" in self.path and self.command == "GET":
            self.torn.append(self.path)
            body = BODY if len(self.torn) > 1 else BODY[::-1]
        elif "/xet/" in self.path:
            headers |= {"X-Xet-Hash": "00" * 32, "X-Xet-Refresh-Route": f"http://{self.headers['Host']}/store"}
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What came of each repository: text and nothing, or an error's kind and words; asked again where tests come in another order."""
    Hub.tokens.clear()
    Hub.torn.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    folder = tmp_path_factory.mktemp("hub")
    given = {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(folder / "home"),
        "HF_TOKEN": "hf_ours",
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "0",
        "CROSSLIGN_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1",
    }
    command = [sys.executable, "-c", ASK, str(folder), sha256(BODY).hexdigest(), "plain", "gated", "portal", "signin", "xet"]
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, timeout=120, check=False)
    server.shutdown()
    server.server_close()
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_sites_own_hub_is_asked_with_the_users_token(said):
    assert said["plain"] == [BODY.decode(), ""]
    assert Hub.tokens == {"Bearer hf_ours"}


def test_a_repository_behind_terms_says_how_to_agree(said):
    kind, words = said["gated"]
    assert kind == "NetworkError"
    assert "accept the terms" in words
    assert "HF_TOKEN" in words


@pytest.mark.parametrize("mode", ["portal", "signin", "other", "list", "page"])
def test_a_page_in_the_hubs_place_is_no_hub(said, mode):
    kind, words = said[mode]
    assert kind == "NetworkError"
    assert "another server answered in its place" in words
    assert "require you to sign in" in words


def test_wrong_bytes_in_the_hubs_cache_are_not_read_again(said):
    assert said["torn"] == BODY.decode()
    assert len(Hub.torn) == 2


def test_a_store_that_fails_says_how_to_do_without(said):
    kind, words = said["xet"]
    assert kind == "TransientError"
    assert "HF_HUB_DISABLE_XET=1" in words


def test_the_beginning_of_a_commits_name_is_made_whole_by_the_hub_and_by_the_cache(said):
    """The server gives no file by it."""
    assert said["short"] == [BODY.decode(), ""]
    assert said["short, offline"] == [BODY.decode(), ""]
    kind, words = said["none"]
    assert kind == "NetworkError"
    assert "Invalid rev id" in words
