"""A repository of the hub, whole: through its own client, cache and offline switch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslign.corpora.sources._network import is_offline
from crosslign.errors import NetworkError

MODEL_FILES = (".json", ".txt", ".safetensors", ".model", ".md", ".vocab", ".bpe")
"""Files of a model's folder that are kept: no pickles, no code, no other framework's weights."""


def of_the_network(error: Exception) -> bool:
    """Tell whether an error of the hub's client is one of the network, the hub or its cache."""
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    known = isinstance(error, HfHubHTTPError | LocalEntryNotFoundError | OfflineModeIsEnabled | ConnectionError)
    # A proxy that refuses comes as an error of the client's own web client, whose package has had several names.
    return known or type(error).__module__.startswith("httpx")


def snapshot(what: str, repository: str, revision: str | None, patterns: Sequence[str]) -> Path:
    """Return the folder of a repository's files in the hub's cache, downloaded first where the network may be used.

    Args:
        what: what it is fetched for, for messages.
        repository: `organisation/name`.
        revision: commit, branch or tag; None is `main`. The folder is called after the commit that it means.
        patterns: what the names of the wanted files look like.

    Raises:
        NetworkError: the cache lacks it and the hub did not give it; says what to do.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=list(patterns), local_files_only=is_offline()))
    except Exception as error:
        if not of_the_network(error):
            raise
        at = revision or "main"
        raise NetworkError(
            f"{what} could not be had from the hub",
            where=f"hub:{repository}@{at}",
            why=" ".join(str(error).split())[:300],
            do=f"With network run `hf download {repository} --revision {at}` into the same HF_HOME, or name a folder",
        ) from error
