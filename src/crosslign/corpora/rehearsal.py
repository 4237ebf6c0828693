"""A rehearsal of a target's downloads: small files in the publishers' forms lie at their own paths, and servers fail as they are known to.

What is rehearsed is the real thing: the addresses of the catalog, `fetch_file` with its checks, waits and resumptions, the clients of the
hub and of packages. Only the bytes are others, and the sums and sizes of the catalog are theirs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from crosslign.config.catalog import RAW, in_repository, source_kind
from crosslign.config.data_plan import data_plan
from crosslign.config.graph import source_file
from crosslign.config.project import Project
from crosslign.console import number_of
from crosslign.corpora.fetch import Patience, fetch_file, patiently
from crosslign.corpora.loopback import Publishers, serving
from crosslign.corpora.sources._client import WEB_MIRROR
from crosslign.corpora.sources._snapshot import SHORT, snapshot
from crosslign.corpora.stand_ins._file import write_file
from crosslign.corpora.stand_ins._packing import archive, packed
from crosslign.corpora.stand_ins._sentences import load_sentences
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import CrosslignError
from crosslign.files.home import own_folder

AT_ONCE = 8
"""Files that are fetched at a time."""
HUB, PACKAGES = "/hub", "/packages"
ENCODER_FILES = ("config.json", "model.safetensors", "tokenizer.json")
FIRST_S, LONGEST_S, TRIES = 0.02, 1.0, 12
"""Waits of a rehearsal: what a publisher asks for in minutes."""

Came = Callable[[Patience], bool]
"""Fetches something, and tells whether it is the publisher's."""


@dataclass
class Rehearsal:
    """What a rehearsal was.

    Attributes:
        files: how many were wanted.
        wrong: what became of each that is not right.
        faults: how often each kind of failure happened.
        requests: how many the server answered.
    """

    files: int
    wrong: dict[str, str] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    requests: int = 0


@dataclass
class _Site:
    """All publishers: what lies at each path, and the files of each repository of GitHub."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    limits: set[str] = field(default_factory=set)
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    wheels: dict[str, dict[str, str]] = field(default_factory=dict)

    def put(self, source: Source, file: AskedFile, body: bytes) -> None:
        """Put a file where its publisher has it."""
        kind, path = source_kind(source), str(file.get("path", file["name"]))
        if kind == "github":
            self.repositories.setdefault(f"{source['github']}/tar.gz/{source['revision']}", {})[in_repository(source, file)] = body
        elif kind == "hub":
            kind, revision = source.get("repo_type", "model"), str(source.get("revision", "main"))
            folder = {"dataset": "/datasets"}.get(kind, "")
            commit = self._commit(kind, source["hub"], revision) if SHORT.fullmatch(revision) else revision
            self.bodies[f"{HUB}{folder}/{source['hub']}/resolve/{commit}/{quote(path)}"] = body
        elif kind == "package":
            self.wheels.setdefault(source["package"], {})[file["name"]] = hashlib.sha256(body).hexdigest()
            self.bodies[f"{PACKAGES}/files/{file['name']}"] = body
        else:
            from crosslign.corpora.sources import opus, url

            address = opus.find(source, file) if kind == "opus" else url.url_of(source, file)
            at = address.partition("://")[2]
            self.bodies[f"/{at}"] = body
            if "connections" in source:
                self.limits.add(f"/{at}")

    def _commit(self, kind: str, repository: str, revision: str) -> str:
        """Have the hub say which commit a revision of a repository means, and return it."""
        commit = revision.ljust(40, "0")
        self.bodies[f"{HUB}/api/{kind}s/{repository}/revision/{revision}"] = json.dumps({"id": repository, "sha": commit}).encode()
        return commit

    def put_encoder(self, entry: Mapping[str, Any]) -> dict[str, bytes]:
        """Put a base encoder where the hub has it, and return its files."""
        repository = entry["hub"]
        commit = self._commit("model", repository, str(entry.get("revision", "main")))
        files = {name: f"{repository}/{name}\n".encode() * 2000 for name in ENCODER_FILES}
        listed = [{"type": "file", "path": name, "size": len(body), "oid": "0" * 40} for name, body in files.items()]
        self.bodies[f"{HUB}/api/models/{repository}/tree/{commit}"] = json.dumps(listed).encode()
        self.bodies |= {f"{HUB}/{repository}/resolve/{commit}/{name}": body for name, body in files.items()}
        return files

    def finish(self) -> None:
        """Put the archives of repositories and the list of each package's files."""
        for name, members in self.repositories.items():
            repository, _, revision = name.partition("/tar.gz/")
            top = f"{repository.partition('/')[2]}-{revision}"
            self.bodies[f"/codeload.github.com/{name}"] = archive(".tar.gz", {f"{top}/{path}": body for path, body in members.items()})
            self.limits.add(f"/codeload.github.com/{name}")
            raw = f"/{RAW.partition('://')[2]}{repository}/{revision}/"
            self.bodies |= {f"{raw}{path}": body for path, body in members.items()}
        for package, files in self.wheels.items():
            links = "".join(f'<a href="{PACKAGES}/files/{name}#sha256={total}">{name}</a>' for name, total in files.items())
            self.bodies[f"{PACKAGES}/simple/{package}/"] = f"<!DOCTYPE html><html><body>{links}</body></html>".encode()


def _wheel(source: Source, name: str) -> bytes:
    """Return the least that pip takes for a wheel."""
    tag = "-".join(name.removesuffix(".whl").split("-")[-3:])
    said = f"{source['package'].replace('-', '_')}-{source['version']}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {source['package']}\nVersion: {source['version']}\n".encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: crosslign\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    return archive(name, {f"{said}/METADATA": metadata, f"{said}/WHEEL": wheel, f"{said}/RECORD": b""})


def _stand_in(source: Source, name: str, sentences: Sequence[Mapping[str, str]], folder: Path) -> bytes:
    """Return a small file of a name, in the publisher's form where a stand-in knows it."""
    if "package" in source:
        return _wheel(source, name)
    if "stand_in" in source:
        path = folder / hashlib.sha256(name.encode()).hexdigest()
        write_file(path, source["stand_in"], name, sentences)
        return path.read_bytes()
    content = f"{name}\n".encode() * 2000
    return archive(name, {"lines.txt": content}) if name.endswith((".zip", ".whl", ".tar.gz", ".tgz", ".tar")) else packed(name, content)


@contextmanager
def _environment(address: str, folder: Path) -> Iterator[None]:
    """Have every client of this process ask the loopback server alone, and keep its cache in the rehearsal's folder."""
    given = {
        WEB_MIRROR: address,
        "HF_ENDPOINT": f"{address}{HUB}",
        "HF_HOME": str(folder / "hub"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_OFFLINE": "0",
        "CROSSLIGN_OFFLINE": "0",
        "PIP_INDEX_URL": f"{address}{PACKAGES}/simple",
        "PIP_CONFIG_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    dropped = ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX")
    before = {name: os.environ.pop(name, None) for name in (*given, *dropped)}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _file_came(name: str, source: Source, file: AskedFile, total: str, dest: Path) -> Came:
    return lambda patience: fetch_file(name, source, file, dest, [], patience)["sha256"] == total


def _encoder_came(name: str, entry: Mapping[str, Any], files: Mapping[str, bytes]) -> Came:
    def came(patience: Patience) -> bool:
        found = patiently(lambda: snapshot(f"encoder {name!r}", entry["hub"], entry.get("revision"), ENCODER_FILES), patience)
        return all((found / file).read_bytes() == body for file, body in files.items())

    return came


def _put_all(project: Project, targets: Sequence[str], folder: Path) -> tuple[_Site, dict[str, Came]]:
    """Put what targets download where the publishers have it; return the site, and for each file what fetches it."""
    sentences = load_sentences(own_folder(project.sources["written"]["local"]))
    (folder / "stand_ins").mkdir(parents=True)
    site, wanted = _Site(), dict[str, Came]()
    for need in data_plan(project, targets):
        entry: Mapping[str, Any] = project.encoders.get(need.source, {})
        if need.file == entry.get("hub"):
            wanted[need.source] = _encoder_came(need.source, entry, site.put_encoder(entry))
            continue
        source = project.sources.get(need.source)
        if source is None or source_kind(source) == "local" or "split" in source:
            continue
        file = source_file(project, need.source, need.file)
        body = _stand_in(source, need.file, sentences, folder / "stand_ins")
        head = len(body) // 2 if "head" in file else len(body)
        total = hashlib.sha256(body[:head]).hexdigest()
        known = {"sha256": total, "bytes": head, "head": head, "about_bytes": len(body)}
        site.put(source, file, body)
        asked: Any = {**file, **{key: known[key] for key in known if key in file}}
        dest = folder / "downloads" / need.source / file["name"]
        wanted[f"{need.source}/{file['name']}"] = _file_came(need.source, source, asked, total, dest)
    site.finish()
    return site, wanted


def rehearse(project: Project, targets: Sequence[str], folder: Path, share: float, seed: int) -> Rehearsal:
    """Fetch every file that targets download from a loopback server that fails at random, and look at what came.

    A base encoder of the hub counts as one file. The hub's client reads its address when it is first imported: this process must not
    have done so.

    Args:
        project: the configuration.
        targets: as `data_plan` takes them.
        folder: an empty folder; what is fetched lies below it.
        share: of the requests that go wrong, 0 to 1.
        seed: of what goes wrong.
    """
    site, wanted = _put_all(project, targets, folder)
    patience = Patience(tries=TRIES, first_s=FIRST_S, busy_s=FIRST_S, longest_s=LONGEST_S)

    def problem(came: Came) -> str:
        try:
            return "" if came(patience) else "its bytes differ from the publisher's"
        except CrosslignError as error:
            return str(error)

    server = Publishers(site.bodies, share, seed, frozenset(site.limits))
    with serving(server), _environment(server.address, folder), ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(wanted, pool.map(problem, wanted.values()), strict=True))
    return Rehearsal(len(wanted), {name: why for name, why in found.items() if why}, dict(server.faults), server.requests)


def rehearsal_text(done: Rehearsal) -> str:
    """Return what a rehearsal was, for people."""
    if not done.files:
        return "these targets download nothing"
    faults = Counter(done.faults)
    lines = [f"{number_of(done.files, 'file')}, {done.requests} requests, {sum(faults.values())} of them failed"]
    lines += [f"  {name:<10} {count:>5}" for name, count in sorted(faults.items())]
    lines += [f"not right: {name}: {problem}" for name, problem in done.wrong.items()]
    return "\n".join([*lines, f"{done.files - len(done.wrong):,} of {done.files:,} files are right"])
