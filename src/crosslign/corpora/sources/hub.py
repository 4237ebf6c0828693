"""Files of a repository on the Hugging Face hub, through its own client, cache and offline switch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosslign.config.splits import files_of
from crosslign.corpora import SOURCES
from crosslign.corpora.sources._network import is_offline
from crosslign.corpora.sources._snapshot import as_fetched, commit_of, hub_error
from crosslign.corpora.sources._splits import join
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError
from crosslign.files.checksums import copy_summed


@SOURCES.register(version=1)
def fetch(source: Source, file: AskedFile, dest: Path) -> str:
    """Copy one file out of the hub's cache, downloading it first where the network may be used.

    HF_ENDPOINT, HF_HUB_OFFLINE, HF_HOME and HF_TOKEN hold; CROSSLIGN_OFFLINE=1 leaves only the cache. Of a source with `split` the file is
    that split of the data set (of its configuration `name`), the first `rows` of it where these are given.

    Raises:
        NetworkError: the file is not in the cache and the hub did not give it; one of a repository behind terms says how to agree to them.
        TransientError: the hub is busy, or its store broke off.
        InputError: the data set has no such split, or a file in the cache is damaged.
    """
    import huggingface_hub

    path, revision = str(file.get("path", file["name"])), source.get("revision")
    kind = source.get("repo_type", "dataset" if "split" in source else "model")
    again = dest.with_suffix(".wrong").exists() and not is_offline()  # the cache has wrong bytes

    def get(path: str) -> Path:
        known: dict[str, Any] = {"repo_type": kind, "revision": commit, "local_files_only": is_offline()}
        try:
            return as_fetched(Path(huggingface_hub.hf_hub_download(source["hub"], path, force_download=again, **known)))
        except InputError:
            if is_offline():
                raise
        return as_fetched(Path(huggingface_hub.hf_hub_download(source["hub"], path, force_download=True, **known)))

    try:
        commit = commit_of(source["hub"], revision, kind)
        if "split" not in source:
            return copy_summed(get(path), dest)
        listed = huggingface_hub.list_repo_files(source["hub"], repo_type=kind, revision=commit)
        return join(files_of(listed, source.get("name", ""), source["split"], f"hub:{source['hub']}"), get, source.get("rows"), dest)
    except Exception as error:
        if problem := hub_error(str(file["name"]), error, f"hub:{source['hub']}@{revision or 'main'}/{path}"):
            raise problem from error
        raise
