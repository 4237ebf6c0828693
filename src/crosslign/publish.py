"""A trained encoder to a model hub, through the hub's own client: private unless asked, tried again where the line goes dead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from crosslign.corpora.fetch import Patience
from crosslign.corpora.sources._network import TransientError, require_network
from crosslign.corpora.sources._snapshot import hub_error
from crosslign.errors import InputError
from crosslign.files.walk import files_below

T = TypeVar("T")
CARD = "README.md"
REFUSED = (401, 403)
SIGN_IN = "Sign in (`hf auth login`), or set HF_TOKEN to a token with write access"


def publish(folder: Path, card: str, name: str, *, public: bool) -> str:
    """Upload the files of an encoder's folder with another card, in one commit; return the address of the repository.

    What lies there of an earlier upload is replaced file by file. The hub's client takes address and token from HF_ENDPOINT and HF_TOKEN,
    or from `hf auth login`.

    Args:
        folder: files of one encoder.
        card: content of README.md.
        name: `organisation/name` of the repository; it is made where it is not there.
        public: whether everybody may read it.

    Raises:
        InputError: the name is none, the token is refused, or a public repository is there and `public` was not asked for.
        NetworkError: the hub cannot be reached, or refuses.
    """
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HFValidationError

    require_network("the hub", f"crosslign push {name}")
    api, tries = HfApi(library_name="crosslign"), Patience()
    try:
        address = _again(api.create_repo, name, tries)(name, private=not public, exist_ok=True)
    except HFValidationError as error:
        raise InputError(f"{name!r} is not the name of a repository", where="NAME", why=str(error), do="Write organisation/name") from error
    if not public and not _again(api.repo_info, name, tries)(name).private:
        raise InputError(
            "the repository is public", where=name, do="Give --public if everybody may read the model, or name another repository"
        )
    contents: Mapping[str, str | Path | bytes] = {
        **{path.relative_to(folder).as_posix(): path for path in files_below(folder)},
        CARD: card.encode(),
    }
    additions = [CommitOperationAdd(place, content) for place, content in contents.items()]
    _again(api.create_commit, name, tries)(name, additions, commit_message="Encoder, card and scores, from crosslign")
    return str(address)


def _again(call: Callable[..., T], name: str, patience: Patience) -> Callable[..., T]:
    """Return a call of the hub's client that is tried again where the line went dead or the hub is busy, and fails in words."""

    def tried(*given: object, **named: object) -> T:
        count = 0
        while True:
            try:
                return call(*given, **named)
            except Exception as raised:
                inner = raised.__cause__ if isinstance(raised, RuntimeError) else None  # what ended the upload of one file
                error = inner if isinstance(inner, Exception) else raised
                status = getattr(getattr(error, "response", None), "status_code", 0)
                if status in REFUSED:
                    why = f"it answered {status}"
                    raise InputError("the hub rejects the token, or received none", where=name, why=why, do=SIGN_IN) from error
                problem = hub_error("the model", error, name, failed="could not be uploaded to the hub")
                if problem is None:
                    raise
                count += 1
                if not isinstance(problem, TransientError) or count >= patience.tries:
                    raise problem from error
                patience.wait(count, problem)

    return tried
