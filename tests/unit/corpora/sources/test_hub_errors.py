"""What the hub's own web client raises, such as for a proxy that refuses, is an error for people; so is damage in its cache."""

import hashlib

import pytest

from crosslign.corpora.sources._snapshot import snapshot
from crosslign.corpora.sources.hub import fetch
from crosslign.errors import InputError, NetworkError


@pytest.mark.parametrize(("module", "wanted"), [("httpx", NetworkError), ("httpx2", NetworkError), ("elsewhere", RuntimeError)])
def test_a_proxy_that_refuses_is_an_error_of_the_network(monkeypatch, tmp_path, module, wanted):
    error = type("ProxyError", (RuntimeError,), {"__module__": module})

    def refused(*args, **kwargs):
        raise error("501 Unsupported method")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", refused)
    with pytest.raises(wanted, match=r"\b501\b"):
        snapshot("encoder 'x'", "owner/model", None, ["*"])
    with pytest.raises(wanted, match=r"\b501\b"):
        fetch({"hub": "owner/data", "repo_type": "dataset"}, {"name": "a.txt"}, tmp_path / "a.txt")


def test_a_damaged_file_of_the_cache_is_asked_for_again_where_the_network_may_be_used(monkeypatch, tmp_path):
    kept, asked = tmp_path / hashlib.sha256(b"whole").hexdigest(), []

    def from_cache(*args, force_download, **kwargs):
        asked.append(force_download)
        if force_download:
            kept.write_bytes(b"whole")
        return str(kept)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", from_cache)
    kept.write_bytes(b"damaged")
    source, file, dest = {"hub": "owner/data", "repo_type": "dataset"}, {"name": "a.txt"}, tmp_path / "a.txt"
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    with pytest.raises(InputError, match=r"[0-9a-f]{64}: .*damaged.*sha256"):
        fetch(source, file, dest)
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "0")
    fetch(source, file, dest)
    assert dest.read_bytes() == b"whole"
    assert asked == [False, False, True]
