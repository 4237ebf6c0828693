"""A trained encoder to a model hub, through the hub's own client: private unless asked, tried again where the line goes dead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from crosslign.corpora.fetch import patiently
from crosslign.corpora.sources._network import require_network
from crosslign.corpora.sources._snapshot import hub_error
from crosslign.errors import InputError
from crosslign.files.walk import files_below

CARD = "README.md"
REFUSED = (401, 403)
SIGN_IN = "Sign in (`hf auth login`), or set HF_TOKEN to a token with write access"


def publish(folder: Path, card: str, name: str, *, public: bool) -> str:
    """Upload the files of an encoder's `folder` with another card, in one commit, file over file; return the repository's address.

    The client takes the hub's address and the token from HF_ENDPOINT and HF_TOKEN, or from `hf auth login`.

    Raises:
        InputError: `name` is none, the token is refused, or a public repository is there and `public` was not asked for.
        NetworkError: the hub cannot be reached, or refuses.
    """
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HFValidationError

    require_network("the hub", f"crosslign push {name}")
    api = HfApi(library_name="crosslign")
    try:
        address = _asked(name, api.create_repo, private=not public, exist_ok=True)
    except HFValidationError as error:
        raise InputError(f"{name!r} is not the name of a repository", where="NAME", why=str(error), do="Write organisation/name") from error
    if not public and not _asked(name, api.repo_info).private:
        do = "Give --public if everybody may read the model, or name another repository"
        raise InputError("the repository is public", where=name, do=do)
    files = [CommitOperationAdd(path.relative_to(folder).as_posix(), path) for path in files_below(folder) if path != folder / CARD]
    files.append(CommitOperationAdd(CARD, card.encode()))
    _asked(name, api.create_commit, files, commit_message="Encoder, card and scores, from crosslign")
    return str(address)


def _asked(name: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Return what a call about a repository gives; tried again where the line goes dead or the hub is busy, and fails in words."""

    def ask() -> Any:
        try:
            return call(name, *given, **named)
        except Exception as raised:
            inner = raised.__cause__ if isinstance(raised, RuntimeError) else None  # what ended the upload of one file
            error = inner if isinstance(inner, Exception) else raised
            status = getattr(getattr(error, "response", None), "status_code", 0)
            if status in REFUSED:
                why = f"it answered {status}"
                raise InputError("the hub rejects the token, or received none", where=name, why=why, do=SIGN_IN) from error
            if problem := hub_error("the model", error, name, failed="could not be uploaded to the hub"):
                raise problem from error
            raise

    return patiently(ask)
