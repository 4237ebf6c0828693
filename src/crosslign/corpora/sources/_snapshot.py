"""A repository of the hub, whole, through its own client, cache and offline switch; and what that client says when it fails, in words."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import threading
import traceback
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import httpx2

from crosslign.corpora.sources._client import BROKEN, BUSY, CERTIFICATES, SIGN_IN, explained, retry_after, unsafe
from crosslign.corpora.sources._network import BusyError, TransientError, UnsafeError, is_offline
from crosslign.errors import InputError, NetworkError
from crosslign.files.checksums import sha256_file

SHORT = re.compile(r"[0-9a-f]{7,39}")
"""The beginning of a commit's name, where nobody has the whole one."""
NO_HUB = "missing the 'X-Repo-Commit' header"
"""What the client says of an answer that is none of a hub's."""
FORMS = (LookupError, TypeError, ValueError, AttributeError)
"""What the client raises over an answer of another form."""
PORTAL = "Open the hub's page in a browser: your network may require you to sign in; if HF_ENDPOINT is set, check it"
SHA256, SHA1 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")
"""Names of files in the hub's cache: large ones are called by their SHA-256, small ones by Git's SHA-1."""
GUARDING = threading.Lock()
XET = "Set HF_HUB_DISABLE_XET=1 to fetch by plain HTTP, then run the same command again"


log = logging.getLogger(__name__)


def damage(file: Path) -> str:
    """Return what is wrong with a large file of the hub's cache, which is called by its SHA-256 there; empty where it is whole."""
    kept = file.resolve()
    found = sha256_file(kept) if SHA256.fullmatch(kept.name) else kept.name
    return "" if found == kept.name else f"its sha256 is {found}, not {kept.name}"


def as_fetched(file: Path) -> Path:
    """Return a file of the hub's cache, which is years old at times and which its client reads again as it lies there.

    Raises:
        InputError: it is not the one that the hub gave; a small one is warned of, since a mirror may call it otherwise.
    """
    kept = file.resolve()
    if why := damage(file):
        do = f"Remove {kept}, then run the same command again on a machine with network"
        raise InputError("a file in the hub's cache is damaged", where=str(file), why=why, do=do)
    if SHA1.fullmatch(kept.name):
        content = kept.read_bytes()
        sums = [hashlib.sha1(head + content, usedforsecurity=False).hexdigest() for head in (b"blob %d\0" % len(content), b"")]
        if kept.name not in sums:
            log.warning(
                "the content of %s differs from its SHA-1 in the hub's cache: unless a mirror names files otherwise, remove %s", file, kept
            )
    return file


def hub_error(
    what: str, error: Exception, where: str, do: str = "", *, failed: str = "could not be downloaded from the hub"
) -> NetworkError | None:
    """Return the error for people where the network, the hub or its cache failed; None for any other error.

    Args:
        what: what could not be had, or brought.
        error: what the hub's client raised.
        where: repository, revision and path.
        do: what to do where the cause names nothing better.
        failed: what became of it.
    """
    from huggingface_hub import errors as hub

    why, lost = " ".join(str(error).split())[:300].rstrip(" ."), f"{what} {failed}"
    response = next((found for one in _causes(error) if (found := getattr(one, "response", None)) is not None), None)
    status = 0 if response is None else response.status_code
    if _of_xet(error):
        return TransientError(f"{lost}'s Xet store", where=where, why=why, do=XET)
    if response is not None and status in BUSY:
        return BusyError(lost, retry_after=retry_after(response.headers), where=where, why=why)
    if status in BROKEN:
        return TransientError(lost, where=where, why=why)
    if not status and (web := next(filter(_of_web_client, _causes(error)), None)):
        way = explained(web, where)
        return type(way)(f"{lost}: {way.what}", where=where, why=way.why, do=way.do or do)
    strange = isinstance(error, FORMS) and not isinstance(error, hub.HFValidationError) and "huggingface_hub" in _path_of(error)
    if not strange and not isinstance(error, hub.HfHubHTTPError | hub.LocalEntryNotFoundError | hub.OfflineModeIsEnabled | ConnectionError):
        return None
    if strange or NO_HUB in why or status in SIGN_IN:
        lost, do = f"{lost}: another server answered in its place", PORTAL
    elif isinstance(error, hub.GatedRepoError):
        do = "Sign in to the hub, accept the terms on the repository's page, and set HF_TOKEN to your token"
    elif status == 401:
        do = "Check the name; if the repository is private, set HF_TOKEN to a token with read access"
    dead = not status and do != PORTAL and not isinstance(error, hub.OfflineModeIsEnabled) and not is_offline()  # the line
    return (TransientError if dead else NetworkError)(lost, where=where, why=why, do=do)


def _causes(error: BaseException | None) -> Iterator[Exception]:
    """Yield an error and what led to it: the hub's client says that a file is not in its cache where the line went dead."""
    while isinstance(error, Exception):
        yield error
        error = error.__cause__


def _of_xet(error: Exception) -> bool:
    """Tell whether an error comes from the hub's second store: by its own name, or by the functions that it went through."""
    through = "".join(frame.name for frame in traceback.extract_tb(error.__traceback__))
    return "xet" in f"{type(error).__module__}{type(error).__name__}{through}".lower()


def _path_of(error: Exception) -> str:
    """Return the files of the functions that an error went through."""
    return " ".join(frame.filename for frame in traceback.extract_tb(error.__traceback__))


def _of_web_client(error: Exception) -> bool:
    """Tell whether an error is one of the client's own web client, whose package has had several names: a proxy that refuses, for one."""
    return type(error).__module__.startswith(("httpx", "httpcore"))


def obey_certificates() -> None:
    """Have the hub's client, which looks at OpenSSL's variables alone, take the certificates that those of others name."""
    path = next((os.environ[name] for name in CERTIFICATES if os.environ.get(name)), "")
    if path:
        os.environ["SSL_CERT_DIR" if Path(path).is_dir() else "SSL_CERT_FILE"] = path


def unsafe_way(to: httpx2.URL | str) -> UnsafeError | None:
    """Return the error where the hub is asked by https, and leads to http; None for any other address."""
    from huggingface_hub import constants

    if httpx2.URL(to).scheme != "http" or not constants.ENDPOINT.startswith("https:"):
        return None
    do = "If you trust your network and the hub's copy that HF_ENDPOINT names, name it by http, or put the files into a mirror"
    return unsafe(to, constants.ENDPOINT, "the hub's client does not verify all of them", do)


def _look(request: httpx2.Request) -> None:
    if problem := unsafe_way(request.url):
        raise problem


@functools.cache
def _guard() -> None:
    """Have the hub's client go from https to no http, as the one for publishers does; also where it begins a new session."""
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    def guarded() -> httpx2.Client:
        made = default_client_factory()
        made.event_hooks["request"].append(_look)
        return made

    set_client_factory(guarded)


def commit_of(repository: str, revision: str | None, kind: str = "model") -> str | None:
    """Return the commit that the beginning of its name stands for; any other revision as it is.

    The hub's own client asks for files by the whole name alone, while the hub says which it is; without network the cache does.
    """
    import huggingface_hub

    obey_certificates()
    with GUARDING:
        _guard()
    if revision is None or not SHORT.fullmatch(revision):
        return revision
    if is_offline():
        named = huggingface_hub.file_download.repo_folder_name(repo_id=repository, repo_type=kind)
        kept = Path(huggingface_hub.constants.HF_HUB_CACHE, named, "snapshots").glob(f"{revision}*")
        return next((folder.name for folder in kept), revision)
    return huggingface_hub.HfApi().repo_info(repository, repo_type=kind, revision=revision).sha or revision


def snapshot(what: str, repository: str, revision: str | None, patterns: Sequence[str]) -> Path:
    """Return the folder of a repository's files in the hub's cache, downloaded first where the network may be used.

    Args:
        what: what it is fetched for, for messages.
        repository: `organisation/name`.
        revision: commit, branch or tag; None is `main`. The folder is called after the commit that it means.
        patterns: what the names of the wanted files look like.

    Raises:
        NetworkError: the cache lacks it and the hub did not give it; says what to do.
        InputError: a file in the cache is damaged.
    """
    from huggingface_hub import snapshot_download

    at = revision or "main"
    do = f"On a machine with network, run `hf download {repository} --revision {at}` with the same HF_HOME, or name a folder"
    try:
        commit = commit_of(repository, revision)
        folder = Path(snapshot_download(repository, revision=commit, allow_patterns=list(patterns), local_files_only=is_offline()))
    except Exception as error:
        if problem := hub_error(what, error, f"hub:{repository}@{at}", do):
            raise problem from error
        raise
    for file in sorted(folder.rglob("*")):
        if file.is_file() and any(fnmatch(file.name, pattern) for pattern in patterns):
            as_fetched(file)
    return folder
