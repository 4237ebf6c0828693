"""What publishers say of the files of a run before anything is fetched: each address is asked for its head alone.

Hosts are asked side by side, each one address after another, and one that asks to be left alone is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from crosslign.config.catalog import addresses, off, source_kind
from crosslign.config.data_plan import FileNeed
from crosslign.config.graph import source_file
from crosslign.config.project import Project
from crosslign.console import bytes_text, number_of
from crosslign.corpora.sources import github, opus, url
from crosslign.corpora.sources._client import BUSY as ASKED_TOO_MUCH
from crosslign.corpora.sources._client import SIGN_IN, client, placed
from crosslign.corpora.sources._snapshot import commit_of, hub_error
from crosslign.errors import CrosslignError

THERE, MOVED, SIZE, GATED, GONE = "there", "moved", "size differs", "gated", "gone"
BUSY, SILENT, PIP, SHORTENED = "busy", "no answer", "left to pip", "short name"
MISSING = (SIZE, GATED, GONE)
"""What waiting does not mend."""
HOSTS = 16
"""Hosts that are asked at a time."""
PAUSE_S = 0.1
"""Between two questions to a host."""
STATES = {**dict.fromkeys((401, 403, *SIGN_IN), GATED), **dict.fromkeys((404, 410, 451), GONE), **dict.fromkeys(ASKED_TOO_MUCH, BUSY)}


@dataclass(frozen=True)
class Head:
    """What was said of one address.

    Attributes:
        source, file: what it is the address of; the first one, where several files come from it.
        place: the address, or the repository and path of the hub.
        state: one of this module's.
        said: more of it.
    """

    source: str
    file: str
    place: str
    state: str
    said: str = ""


def _places(source: Mapping[str, Any], file: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (kind, address) of each place that gives a file."""
    for place in addresses(source):
        kind = source_kind(place)
        if kind == "url":
            yield "url", url.url_of(place, file)
        elif kind == "github":
            at = github.archive_of(place)
            yield "archive", f"{at['url']}{at['path']}"
        elif kind == "opus":
            yield "url", opus.find(place, file)
        elif kind == "hub" and "split" not in place:
            at, path = place.get("revision", "main"), file.get("path", file["name"])
            yield "hub", f"{place.get('repo_type', 'model')}:{place['hub']}@{at}:{path}"
        elif kind == "package":
            yield "package", f"{place['package']}=={place['version']}"


def _by_size(size: int | None, file: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the size of a file that is there makes of it."""
    expected = None if "head" in file else file.get("bytes")
    if size is None:
        return THERE, "size not given"
    if not size and expected != 0:
        return SIZE, "it is empty"
    if expected is not None and size != expected:
        return SIZE, f"expected {number_of(expected, 'byte')}, found {size:,}"
    why = off(size, file) if expected is None else ""
    return (SIZE, why) if why else (THERE, bytes_text(size))


def _asked(address: str, file: Mapping[str, Any], *, archive: bool) -> tuple[str, str]:
    """Ask a web server for the head of a file."""
    at = placed(address)
    with client(at) as web:
        response = web.head(at)
    status, length = response.status_code, response.headers.get("Content-Length", "")
    if status in (405, 501):
        return THERE, "does not answer HEAD requests: not checked further"
    if status not in (200, 206):
        return STATES.get(status, SILENT), f"the server answered {status} {response.reason_phrase}"
    if response.headers.get("Content-Type", "").lower().startswith("text/html") and not file["name"].endswith((".html", ".htm")):
        return GATED, "a web page is in its place"
    state, said = (THERE, "") if archive else _by_size(int(length) if length.isdigit() else None, file)
    forever = [answer for answer in response.history if answer.status_code in (301, 308)]
    return (MOVED, f"permanently to {response.url}") if state == THERE and forever else (state, said)


def _asked_hub(place: str, file: Mapping[str, Any]) -> tuple[str, str]:
    """Ask the hub for the head of a file, with its own client and the user's token."""
    from huggingface_hub import errors, get_hf_file_metadata, hf_hub_url

    kind, rest = place.split(":", 1)
    repository, at = rest.split("@", 1)
    revision, path = at.split(":", 1)
    try:
        commit = commit_of(repository, revision, kind)
        found = get_hf_file_metadata(hf_hub_url(repository, path, repo_type=kind, revision=commit))
    except errors.GatedRepoError as error:
        problem = hub_error(file["name"], error, f"hub:{repository}")
        return GATED, problem.do if problem else ""
    except (errors.EntryNotFoundError, errors.RevisionNotFoundError, errors.RepositoryNotFoundError) as error:
        return GONE, type(error).__name__
    except Exception as error:
        problem = hub_error(file["name"], error, f"hub:{repository}")
        if problem is None:
            raise
        return SILENT, problem.why
    if commit != revision:
        return SHORTENED, f"{revision} is an abbreviated commit: on the hub it is {commit}"
    return _by_size(found.size, file)


@dataclass(frozen=True)
class _Question:
    """One address, and what it is the address of."""

    kind: str
    place: str
    source: str
    file: Mapping[str, Any]

    @property
    def host(self) -> str:
        return urlsplit(self.place).netloc if self.kind in ("url", "archive") else self.kind


def _ask_host(questions: Sequence[_Question]) -> list[Head]:
    """Ask one host all questions, until it wants to be left alone."""
    found: list[Head] = []
    for one in questions:
        if found and found[-1].state == BUSY:
            state, said = BUSY, "not asked: the host limits requests"
        elif one.kind == "package":
            state, said = PIP, ""
        else:
            try:
                hub, archive = one.kind == "hub", one.kind == "archive"
                state, said = _asked_hub(one.place, one.file) if hub else _asked(one.place, one.file, archive=archive)
            except CrosslignError as error:
                state, said = SILENT, error.why or error.what
            time.sleep(PAUSE_S)
        found.append(Head(one.source, str(one.file["name"]), one.place, state, said))
    return found


def survey(project: Project, needs: Sequence[FileNeed]) -> list[Head]:
    """Ask every address of the files that a run downloads, each once; what lies here already is asked for, too.

    Args:
        project: the configuration.
        needs: the files; those of the user's own are passed over, and a base encoder of the hub is asked for by its settings.
    """
    questions: dict[str, _Question] = {}
    for need in needs:
        if need.source in project.sources:
            source, file = project.sources[need.source], source_file(project, need.source, need.file)
        else:
            source, file = project.encoders[need.source], {"name": "config.json"}
            source = source if "hub" in source else {"local": ""}
        for kind, place in _places(source, file):
            questions.setdefault(place, _Question(kind, place, need.source, file))
    ordered = sorted(questions.values(), key=lambda one: one.host)
    hosts = [list(group) for _, group in groupby(ordered, key=lambda one: one.host)]
    with ThreadPoolExecutor(HOSTS) as pool:
        return [head for heads in pool.map(_ask_host, hosts) for head in heads]


def lost(heads: Sequence[Head]) -> list[tuple[str, str]]:
    """Return (source, file) of those that are missing at all of their addresses."""
    found: dict[tuple[str, str], bool] = {}
    for head in heads:
        found[head.source, head.file] = found.get((head.source, head.file), True) and head.state in MISSING
    return [file for file, missing in found.items() if missing]


def survey_lines(heads: Sequence[Head]) -> Iterator[str]:
    """Yield a line a source and state, and one for each address that is not simply there."""
    ordered = sorted(heads, key=lambda head: (head.source, head.state))
    for (source, state), group in groupby(ordered, key=lambda head: (head.source, head.state)):
        found = list(group)
        host = urlsplit(found[0].place).netloc or found[0].place.partition("@")[0]
        yield f"{state:<12} {len(found):>4}  {source:<28} {host}"
        if state not in (THERE, PIP):
            yield from (f"{'':<18} {head.file}: {head.place}: {head.said}" for head in found)
