"""Servers behind a site's own certificates, of publishers and of the hub, and servers that lead from https to http."""

from __future__ import annotations

import hashlib
import os
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from crosslign.corpora.fetch import fetch_file
from crosslign.corpora.sources._client import CERTIFICATES
from crosslign.corpora.sources._snapshot import commit_of, hub_error
from crosslign.corpora.survey import lost, survey
from crosslign.errors import NetworkError

BODY = b"some lines\n" * 50
SHA = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    to = ""

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.send_response(302 if self.to else 200)
        self.send_header("Location" if self.to else "X-Nothing", self.to + "a.txt")
        self.send_header("Content-Length", "0" if self.to else str(len(BODY)))
        self.send_header("ETag", f'"{SHA}"')
        self.send_header("X-Repo-Commit", "0" * 40)  # as the hub says it
        self.send_header("X-Linked-Size", str(len(BODY)))
        self.end_headers()

    def do_GET(self):
        self.do_HEAD()
        if not self.to:
            self.wfile.write(BODY)


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """A certificate of 127.0.0.1 that nobody but itself signs, and its key."""
    folder = tmp_path_factory.mktemp("signed")
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1"]
    done = subprocess.run(["openssl", *made, "-keyout", folder / "key", "-out", folder / "pem"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("openssl cannot make a certificate here")
    return folder / "pem", folder / "key"


@pytest.fixture
def https(online, signed, monkeypatch):
    """A server that such a certificate speaks for, which leads to where its handler's `to` says."""
    for name in (*CERTIFICATES, "SSL_CERT_DIR"):
        monkeypatch.setenv(name, "")
    handler = type("Own", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*signed)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield SimpleNamespace(url=f"https://127.0.0.1:{server.server_port}/", handler=handler, pem=str(signed[0]))
    server.shutdown()
    server.server_close()


def get(url, tmp_path, **more):
    return fetch_file("set", {"url": url}, {"name": "a.txt", **more}, tmp_path / "set" / "a.txt", [])


def test_https_that_leads_to_http_is_followed_only_where_a_hash_vouches_for_the_bytes(https, site, tmp_path, monkeypatch, waits):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", https.pem)
    https.handler.to, site.body = site.url, BODY
    with pytest.raises(NetworkError, match=r"a\.txt: .*https.*http.*sha256.*`urls`"):
        get(https.url, tmp_path, bytes=len(BODY))
    assert site.requests == []
    get(https.url, tmp_path, sha256=SHA)
    assert (tmp_path / "set" / "a.txt").read_bytes() == BODY


@pytest.mark.parametrize(("known", "state"), [({}, "not https"), ({"sha256": SHA}, "there")])
def test_the_survey_says_so(https, site, monkeypatch, known, state):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", https.pem)
    https.handler.to, site.body, site.plan = site.url, BODY, ["ok"]
    project = SimpleNamespace(sources={"set": {"url": https.url, "files": [{"name": "a.txt", **known}]}}, memory={})
    heads = survey(project, [SimpleNamespace(source="set", file="a.txt")])
    assert [head.state for head in heads] == [state]
    assert bool(lost(heads)) == (state == "not https")


ASK_HUB = """
import sys
from pathlib import Path
from types import SimpleNamespace
from crosslign.corpora.sources.hub import fetch
from crosslign.corpora.survey import survey
source, file = {"hub": "lab/set", "revision": "0" * 40}, {"name": "a.txt"}
try:
    fetch(source, file, Path(sys.argv[1], "a.txt"))
except Exception as error:
    print(type(error).__name__, error)
project = SimpleNamespace(sources={"set": {**source, "files": [file]}}, memory={})
print(survey(project, [SimpleNamespace(source="set", file="a.txt")])[0].state)
"""


def test_the_hubs_client_is_led_from_https_to_http_as_little(https, site, tmp_path):
    https.handler.to, site.body = site.url, BODY
    known = {"HF_ENDPOINT": https.url.rstrip("/"), "SSL_CERT_FILE": https.pem, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    asked = [sys.executable, "-c", ASK_HUB, str(tmp_path)]
    done = subprocess.run(asked, env={**os.environ, **known}, capture_output=True, text=True, check=True)
    error, state = done.stdout.splitlines()
    assert error.startswith("UnsafeError")
    assert f"{site.url}a.txt can change the bytes" in error
    assert state == "not https"
    assert site.requests == []


def hub_client():
    from huggingface_hub.utils._http import default_client_factory

    made = default_client_factory()
    made.event_hooks = {}  # in tests it is switched off
    return made


@pytest.mark.parametrize("name", CERTIFICATES)
def test_the_hubs_client_takes_the_certificates_of_each_variable(https, monkeypatch, name):
    import httpx2

    with hub_client() as web, pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        web.get(https.url)
    monkeypatch.setenv(name, https.pem)
    commit_of("owner/model", None)
    with hub_client() as web:
        assert web.get(https.url).content == BODY


def because(url, **settings):
    """Return what the hub's client raises where it finds a file neither at an address nor in its cache."""
    import httpx2
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        with httpx2.Client(**settings) as web:
            web.head(url)
    except httpx2.HTTPError as cause:
        try:
            raise LocalEntryNotFoundError("Please check your connection and try again") from cause
        except LocalEntryNotFoundError as error:
            return error
    raise AssertionError("it answered")


def test_what_the_hubs_client_hides_behind_the_connection_is_told(https, monkeypatch):
    problem = hub_error("a.txt", because(https.url), "hub:lab/set@main", "Run it elsewhere")
    assert "certificate of 127.0.0.1 cannot be verified" in str(problem)
    assert "REQUESTS_CA_BUNDLE to a PEM file" in str(problem)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    problem = hub_error("a.txt", because("https://hub.example/", proxy="http://127.0.0.1:9"), "hub:lab/set@main", "Run it elsewhere")
    assert "hub.example could not be reached" in str(problem)
    assert "HTTPS_PROXY sets a proxy" in str(problem)
