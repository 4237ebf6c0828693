"""Files of a repository on the Hugging Face hub, through its own client, cache and offline switch."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.corpora import SOURCES
from crosslign.corpora.sources._network import is_offline
from crosslign.corpora.sources._snapshot import of_the_network
from crosslign.errors import NetworkError


@SOURCES.register(version=1)
def fetch(source: Mapping[str, Any], file: Mapping[str, Any], dest: Path) -> None:
    """Copy one file out of the hub's cache, downloading it first where the network may be used.

    HF_HUB_OFFLINE, HF_HOME and the client's token hold; CROSSLIGN_OFFLINE=1 leaves only the cache.

    Raises:
        NetworkError: the file is not in the cache and the hub did not give it.
    """
    import huggingface_hub

    path = file.get("path", file["name"])
    revision = source.get("revision")
    where = f"hub:{source['hub']}@{revision or 'main'}/{path}"
    try:
        cached = huggingface_hub.hf_hub_download(
            source["hub"], path, repo_type=source.get("repo_type", "model"), revision=revision, local_files_only=is_offline()
        )
    except Exception as error:
        if not of_the_network(error):
            raise
        raise NetworkError(f"{file['name']} could not be had from the hub", where=where, why=" ".join(str(error).split())[:300]) from error
    shutil.copyfile(cached, dest)
