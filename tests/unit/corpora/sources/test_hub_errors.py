"""What the hub's own web client raises, such as for a proxy that refuses, is an error of the network for people."""

import pytest

from crosslign.corpora.sources._snapshot import snapshot
from crosslign.corpora.sources.hub import fetch
from crosslign.errors import NetworkError


@pytest.mark.parametrize(("module", "wanted"), [("httpx", NetworkError), ("httpx2", NetworkError), ("elsewhere", RuntimeError)])
def test_a_proxy_that_refuses_is_an_error_of_the_network(monkeypatch, tmp_path, module, wanted):
    error = type("ProxyError", (RuntimeError,), {"__module__": module})

    def refused(*args, **kwargs):
        raise error("501 Unsupported method")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", refused)
    with pytest.raises(wanted, match="501 Unsupported method"):
        snapshot("encoder 'x'", "owner/model", None, ["*"])
    with pytest.raises(wanted, match="501 Unsupported method"):
        fetch({"hub": "owner/data", "repo_type": "dataset"}, {"name": "a.txt"}, tmp_path / "a.txt")
