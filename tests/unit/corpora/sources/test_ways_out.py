"""Proxies and certificates of a site: obeyed where they work, told in words where they do not."""

from __future__ import annotations

import socket
import struct
import threading
from collections import UserDict
from contextlib import suppress
from importlib import util

import httpx2
import pytest

from crosslign.corpora.fetch import fetch_file
from crosslign.corpora.sources._network import TransientError
from crosslign.corpora.sources._snapshot import hub_error
from crosslign.corpora.sources.package import pip_failure
from crosslign.errors import InputError, NetworkError

BODY = b"some lines\n" * 50
FILE = {"name": "a.txt", "bytes": len(BODY)}


def pump(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    sink.close()


@pytest.fixture
def socks(online):
    """A SOCKS5 proxy without authentication that counts what it passed on."""
    listener, passed = socket.create_server(("127.0.0.1", 0)), []

    def serve():
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            link.recv(262)
            link.sendall(b"\x05\x00")
            _, _, _, kind = struct.unpack("!4B", link.recv(4))
            host = socket.inet_ntoa(link.recv(4)) if kind == 1 else link.recv(link.recv(1)[0]).decode()
            (port,) = struct.unpack("!H", link.recv(2))
            passed.append((host, port))
            far = socket.create_connection(("127.0.0.1", port))
            link.sendall(b"\x05\x00\x00\x01" + bytes(6))
            threading.Thread(target=pump, args=(link, far), daemon=True).start()
            pump(far, link)

    threading.Thread(target=serve, daemon=True).start()
    yield f"socks5://127.0.0.1:{listener.getsockname()[1]}", passed
    listener.close()


def test_a_socks_proxy_is_gone_through(socks, site, tmp_path, monkeypatch):
    address, passed = socks
    monkeypatch.setenv("ALL_PROXY", address)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    site.body = BODY
    fetch_file("set", {"url": site.url.replace("127.0.0.1", "publisher.example")}, FILE, tmp_path / "set" / "a.txt", [])
    assert (tmp_path / "set" / "a.txt").read_bytes() == BODY
    assert [host for host, _ in passed] == ["publisher.example"]


def test_a_proxy_that_does_not_answer_is_thought_of(site, tmp_path, monkeypatch, waits):
    with socket.create_server(("127.0.0.1", 0)) as free:
        monkeypatch.setenv("ALL_PROXY", f"socks5://user:secret@127.0.0.1:{free.getsockname()[1]}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(NetworkError, match=r"publisher\.example .*ConnectError.*ALL_PROXY.*NO_PROXY") as error:
        fetch_file("set", {"url": "http://publisher.example/"}, FILE, tmp_path / "set" / "a.txt", [])
    assert "secret" not in str(error.value)


@pytest.fixture
def locked_proxies(online, monkeypatch):
    """Proxies of HTTP and SOCKS5 that want a password, by the beginning of their addresses."""
    said = {"http": [b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"], "socks5": [b"\x05\x02"]}
    listeners = {kind: socket.create_server(("127.0.0.1", 0)) for kind in said}

    def serve(kind):
        with suppress(OSError):
            while True:
                link, _ = listeners[kind].accept()
                for answer in said[kind]:
                    link.recv(65536)
                    link.sendall(answer)
                link.close()

    for kind in said:
        threading.Thread(target=serve, args=(kind,), daemon=True).start()
    for name in ("NO_PROXY", "no_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    proxies = UserDict({kind: f"{kind}://127.0.0.1:{listener.getsockname()[1]}" for kind, listener in listeners.items()})
    proxies.said = said
    yield proxies
    for listener in listeners.values():
        listener.close()


@pytest.mark.parametrize(("kind", "scheme"), [("http", "https"), ("http", "http"), ("socks5", "https"), ("socks5", "http")])
def test_a_proxy_that_wants_a_password_is_told_at_once(locked_proxies, tmp_path, monkeypatch, waits, kind, scheme):
    monkeypatch.setenv("ALL_PROXY", locked_proxies[kind])
    with pytest.raises(NetworkError, match=r"publisher\.example/a\.txt: .*password"):
        fetch_file("set", {"url": f"{scheme}://publisher.example/"}, FILE, tmp_path / "set" / "a.txt", [])
    assert not waits


@pytest.mark.parametrize(
    ("kind", "said", "waited"),
    [
        ("http", [b"HTTP/1.1 403 Forbidden\r\n\r\n"], False),
        ("http", [b"HTTP/1.1 405 Method Not Allowed\r\n\r\n"], False),
        ("http", [b"HTTP/1.1 429 Too Many Requests\r\n\r\n"], True),
        ("http", [b"HTTP/1.1 502 Bad Gateway\r\n\r\n"], True),
        ("socks5", [b"\x05\x00", b"\x05\x02\x00\x01" + bytes(6)], False),  # not allowed
        ("socks5", [b"\x05\x00", b"\x05\x04\x00\x01" + bytes(6)], True),  # the host is not reached
    ],
)
def test_a_proxy_that_lets_nobody_through_is_told_at_once_and_one_with_a_fault_asked_again(
    locked_proxies, tmp_path, monkeypatch, waits, kind, said, waited
):
    monkeypatch.setitem(locked_proxies.said, kind, said)
    monkeypatch.setenv("ALL_PROXY", locked_proxies[kind])
    why = r"publisher\.example/a\.txt: .*reached" if waited else r"publisher\.example/a\.txt: .*through"
    with pytest.raises(NetworkError, match=why):
        fetch_file("set", {"url": "https://publisher.example/"}, FILE, tmp_path / "set" / "a.txt", [])
    assert bool(waits) == waited


def test_the_hubs_client_behind_such_a_proxy_says_so_too(locked_proxies):
    with httpx2.Client(proxy=locked_proxies["http"]) as web, pytest.raises(httpx2.ProxyError) as error:
        web.head("https://hub.example/")
    problem = hub_error("a.txt", error.value, "hub:lab/set@main")
    assert "the proxy requires you to sign in" in str(problem)
    assert "put user and password" in str(problem)
    assert not isinstance(problem, TransientError)


def test_pip_behind_a_socks_proxy_says_what_it_lacks(locked_proxies, tmp_path, monkeypatch, waits):
    if util.find_spec("socks"):
        pytest.skip("PySocks is here")
    monkeypatch.setenv("ALL_PROXY", locked_proxies["socks5"])
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    wheel = {"name": "corpus-1.0-py3-none-any.whl"}
    with pytest.raises(NetworkError, match=r"SOCKS.*PySocks.*PIP_PROXY") as error:
        fetch_file("set", {"package": "corpus", "version": "1.0"}, wheel, tmp_path / "set" / wheel["name"], [])
    assert "^^" not in str(error.value)
    assert not waits


def test_of_a_fault_of_pips_own_the_last_line_is_told():
    said = "Collecting a\nTraceback (most recent call last):\n  File x\n    raise y\n    ^^^^^\nValueError: y is bad\n"
    assert str(pip_failure("a.whl", "package a==1", said)) == "package a==1: pip could not download a.whl; ValueError: y is bad"


def test_a_proxy_that_is_none_is_named(site, tmp_path, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(InputError, match=r"a\.txt: .*ALL_PROXY, HTTPS_PROXY and HTTP_PROXY"):
        fetch_file("set", {"url": "http://publisher.example/"}, FILE, tmp_path / "set" / "a.txt", [])


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_certificates_that_are_not_there_are_named(online, tmp_path, monkeypatch, name):
    for other in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, str(tmp_path / "none.pem"))
    with pytest.raises(InputError, match=rf"{name}: .*none\.pem.*PEM"):
        fetch_file("set", {"url": "https://publisher.example/"}, FILE, tmp_path / "set" / "a.txt", [])


def answered(status, kind):
    response = httpx2.Response(status, request=httpx2.Request("GET", "https://hub.example/x"), headers={"Retry-After": "300"})
    return kind("said", response=response)


def test_what_the_hub_refuses_says_what_to_do():
    from huggingface_hub import errors

    gated = hub_error("flores.zip", answered(403, errors.GatedRepoError), "hub:lab/set@main")
    assert "accept the terms" in str(gated)
    assert "HF_TOKEN" in str(gated)
    busy = hub_error("a.txt", answered(429, errors.HfHubHTTPError), "hub:lab/set@main")
    assert busy.retry_after == 300
    private = hub_error("a.txt", answered(401, errors.RepositoryNotFoundError), "hub:lab/set@main")
    assert "Check the name" in str(private)
    xet = hub_error("a.txt", errors.XetDownloadError("chunk"), "hub:lab/set@main")
    assert "HF_HUB_DISABLE_XET=1" in str(xet)
    assert hub_error("a.txt", KeyError("x"), "hub:lab/set@main") is None


def test_a_network_that_wants_a_password_first_is_told_from_a_publisher(site, tmp_path, waits):
    site.plan = ["511"]
    with pytest.raises(NetworkError, match=r"a\.txt .* 511"):
        fetch_file("set", {"url": site.url}, FILE, tmp_path / "set" / "a.txt", [])
    assert not waits
