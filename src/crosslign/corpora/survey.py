"""What publishers say of the files of a run before anything is fetched: each address is asked for its head alone.

Hosts are asked side by side, each one address after another, and one that asks to be left alone is left alone. Where the answer to that
question means little, the first byte is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from typing import cast
from urllib.parse import urlsplit

import httpx2

from crosslign.config.catalog import RAW, addresses, off, source_kind
from crosslign.config.data_plan import FileNeed
from crosslign.config.graph import source_file
from crosslign.config.project import Project
from crosslign.console import bytes_text, number_of
from crosslign.corpora.sources import github, opus, url
from crosslign.corpora.sources._client import SIGN_IN, check_status, client, placed
from crosslign.corpora.sources._network import BusyError, UnsafeError
from crosslign.corpora.sources._pages import PAGES, called_page
from crosslign.corpora.sources._snapshot import commit_of, hub_error, unsafe_way
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import CrosslignError, NetworkError

THERE, MOVED, SIZE, GATED, GONE, UNSAFE = "there", "moved", "size differs", "gated", "gone", "not https"
BUSY, SILENT, PIP, SHORTENED = "busy", "no answer", "left to pip", "short name"
MISSING = (SIZE, GATED, GONE, UNSAFE)
"""What waiting does not help."""
PAGE = "a web page is in its place"
HOSTS = 16
"""Hosts that are asked at a time."""
PAUSE_S = 0.1
"""Between two questions to a host."""
STATES = {**dict.fromkeys((401, 403, *SIGN_IN), GATED), **dict.fromkeys((404, 410, 451), GONE)}
DOUBTFUL = frozenset({400, 403, 404, 405, 501})
"""Answers to HEAD of servers that give the file all the same."""


@dataclass(frozen=True)
class Head:
    """What was said of one address.

    Attributes:
        source, file: what it is the address of; the first one, where several files come from it.
        place: the address, or the repository and path of the hub.
        state: one of this module's.
        said: more of it.
        others: source and name of the other files that come from it.
    """

    source: str
    file: str
    place: str
    state: str
    said: str = ""
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Question:
    """One address, what it is the address of, and whether its host is known to turn those away who ask too often.

    Of files that are asked for only where an archive is gone, `instead` is its address; one of them answers for all.
    """

    kind: str
    place: str
    file: AskedFile
    limits: bool = False
    instead: str = ""
    files: dict[tuple[str, str], None] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return urlsplit(self.place).netloc if self.kind in ("url", "archive") else self.kind


def _questions(source: Source, file: AskedFile) -> Iterator[_Question]:
    """Yield what is to be asked of each place that gives a file."""
    archive = ""
    for place in addresses(source):
        kind, limits = source_kind(place), "connections" in place
        if kind == "url":
            address = url.url_of(place, file)
            yield _Question("url", address, file, limits, archive if address.startswith(RAW) else "")
        elif kind == "github":
            at = github.archive_of(place)
            archive = f"{at['url']}{at['path']}"
            yield _Question("archive", archive, file, limits=True)
        elif kind == "opus":
            yield _Question("url", opus.find(place, file), file, limits)
        elif kind == "hub" and "split" not in place:
            commit, path = place.get("revision", "main"), file.get("path", file["name"])
            yield _Question("hub", f"{place.get('repo_type', 'model')}:{place['hub']}@{commit}:{path}", file)
        elif kind == "package":
            yield _Question("package", f"{place['package']}=={place['version']}", file)


def _by_size(size: int | None, file: AskedFile) -> tuple[str, str]:
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


def _asked(one: _Question) -> tuple[str, str]:
    """Ask a web server for the head of a file, and for its first byte where that says too little."""
    at = placed(one.place)
    with client(at, vouched=bool(one.file.get("sha256")) and one.kind == "url") as web:
        response = web.head(at)
        found = _judged(response, one)
        unsaid = response.status_code == 200 and one.kind == "url" and not url.whole_size(response, one.file)
        page = found == (GATED, PAGE)
        if unsaid or page or (response.status_code in DOUBTFUL and found[0] != BUSY):
            with url.answered(web, at, url.PROBE, limits=one.limits) as response:
                found = _judged(response, one, next(response.iter_raw(), b"") if page else b"")
    return found


def _judged(response: httpx2.Response, one: _Question, begins: bytes = b"") -> tuple[str, str]:
    """Return what an answer, and the first bytes of its body, make of a file."""
    try:
        check_status(response, one.place, one.file["name"], limits=one.limits)
    except BusyError as error:
        return BUSY, error.why
    except NetworkError as error:
        return STATES.get(response.status_code, SILENT), error.why
    if called_page(response.headers.get("Content-Type", ""), begins) and not one.file["name"].endswith(PAGES):
        return GATED, PAGE
    state, said = _by_size(url.whole_size(response, one.file), one.file) if one.kind == "url" else (THERE, "")
    forever = [answer for answer in response.history if answer.status_code in (301, 308)]
    return (MOVED, f"permanently to {response.url}") if state == THERE and forever else (state, said)


def _asked_hub(place: str, file: AskedFile) -> tuple[str, str]:
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
    if found.location and (unsafely := unsafe_way(found.location)):
        raise unsafely
    if commit != revision:
        return SHORTENED, f"{revision} is an abbreviated commit: on the hub it is {commit}"
    return _by_size(found.size, file)


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
                state, said = _asked_hub(one.place, one.file) if one.kind == "hub" else _asked(one)
            except UnsafeError as error:
                state, said = UNSAFE, f"{error.what}: {error.why}"
            except CrosslignError as error:
                state, said = SILENT, error.why or error.what
            time.sleep(PAUSE_S)
        (source, file), *others = one.files
        found.append(Head(source, file, one.place, state, said, tuple(others)))
    return found


def _ask(questions: Collection[_Question]) -> list[Head]:
    """Ask all hosts."""
    ordered = sorted(questions, key=lambda one: one.host)
    hosts = [list(group) for _, group in groupby(ordered, key=lambda one: one.host)]
    with ThreadPoolExecutor(HOSTS) as pool:
        return [head for heads in pool.map(_ask_host, hosts) for head in heads]


def survey(project: Project, needs: Sequence[FileNeed]) -> list[Head]:
    """Ask every address of the files that a run downloads, each once; what lies here already is asked for, too.

    Args:
        project: the configuration.
        needs: the files; those of the user's own are passed over, and a base encoder of the hub is asked for by its settings.
    """
    questions: dict[str, _Question] = {}
    later: dict[str, _Question] = {}
    for need in needs:
        if need.source in project.sources:
            source, file = project.sources[need.source], source_file(project, need.source, need.file)
        else:
            encoder, file = project.encoders[need.source], {"name": "config.json"}
            source = cast(Source, encoder if "hub" in encoder else {"local": ""})
        for one in _questions(source, file):
            same = later.setdefault(one.instead, one) if one.instead else questions.setdefault(one.place, one)
            same.files[need.source, str(file["name"])] = None
    heads = _ask(questions.values())
    gone = {head.place for head in heads if head.state in MISSING}
    return heads + _ask([one for archive, one in later.items() if archive in gone])


def lost(heads: Sequence[Head]) -> list[tuple[str, str]]:
    """Return (source, file) of those that are missing at all of their addresses."""
    found: dict[tuple[str, str], bool] = {}
    for head in heads:
        for file in ((head.source, head.file), *head.others):
            found[file] = found.get(file, True) and head.state in MISSING
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
