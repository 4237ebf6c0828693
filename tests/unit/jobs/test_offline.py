"""A job that computes reaches no other machine, and says what it wanted; its own machine it reaches."""

import os
import socket

import pytest

from crosslign.errors import NetworkError
from crosslign.jobs.offline import SWITCHES, no_network


def test_a_name_fails_at_once_and_is_named():
    with no_network("embed"), pytest.raises(NetworkError, match=r"rule embed: .*huggingface\.co:443; .*docs/add-a-corpus\.md"):
        socket.create_connection(("huggingface.co", 443), timeout=60)


def test_an_address_fails_too():
    with no_network("score"), socket.socket() as tried, pytest.raises(NetworkError, match=r"192\.0\.2\.1:80"):
        tried.connect(("192.0.2.1", 80))


def test_libraries_do_not_turn_it_into_retries():
    requests = pytest.importorskip("requests")
    with no_network("train_system"), pytest.raises(NetworkError, match=r"example\.org:443"):
        requests.get("https://example.org/model.safetensors", timeout=60)


def test_this_machine_is_reached_and_all_is_as_before_afterwards(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    before = socket.getaddrinfo, socket.socket.connect
    with socket.socket() as server, no_network("train_system"):
        assert {os.environ[name] for name in SWITCHES} == {"1"}
        server.bind(("127.0.0.1", 0))
        server.listen()
        socket.create_connection(("localhost", server.getsockname()[1]), timeout=10).close()
    assert (socket.getaddrinfo, socket.socket.connect) == before
    assert os.environ["HF_HUB_OFFLINE"] == "0"
