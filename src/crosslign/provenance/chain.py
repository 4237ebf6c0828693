"""What an artefact depends on: every artefact behind it, each once, read from lineage files alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.files.lineage import checksum, lineage_path, sidecar_if_there
from crosslign.files.walk import passing_gone

ORDER = (
    "table", "scores", "counts", "embeddings", "system", "encoder", "examples", "view", "evaluation", "corpus", "stand_in", "download",
    "translation_model",
)  # fmt: skip
"""Kinds of artefacts, from a table back to the bytes that were fetched."""
ONE_JOB = ("evaluation", "download", "stand_in")
"""Kinds of which a chain has several files in a folder, best read together."""


@dataclass
class Link:
    """One artefact of a chain, or the files of one folder that belong together.

    Attributes:
        path: the file or folder, or the folder that the files lie in, relative to `{results}`.
        kind: what it is; `input` where nothing describes it.
        files: lineage of each file by its path; None where there is none.
        sha256: checksum of each file by its path, as whoever read it has noted it.
        made_of: paths of the links that it was made of, in the order of `chain`.
    """

    path: str
    kind: str
    files: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)
    made_of: list[str] = field(default_factory=list)

    @property
    def lineage(self) -> Mapping[str, Any] | None:
        """The lineage of its first file: what does not change from file to file stands there."""
        return next(iter(self.files.values()))


def _named(path: str, kind: str) -> str:
    return path.rpartition("/")[0] if kind in ONE_JOB and "/" in path else path


def _checksum(path: Path) -> str:
    """Return the checksum of a file that nobody has noted; empty where it is gone."""
    with passing_gone():
        return checksum(path) if path.is_file() else ""
    return ""


def chain(results: Path, paths: Iterable[str]) -> list[Link]:
    """Return artefacts and all that they were made of, each once, what was made later first.

    Args:
        results: the `{results}` folder.
        paths: artefacts to begin with, relative to it.
    """
    links: dict[str, Link] = {}
    link_of: dict[str, str] = {}
    waiting = [(path, "") for path in paths]
    while waiting:
        path, sha256 = waiting.pop(0)
        if path in link_of:
            continue
        lineage = sidecar_if_there(lineage_path(results / path))
        if lineage and sha256 not in ("", lineage["artefact"]["sha256"]):
            lineage = None  # it describes what lies there now, and not what was read
        kind = lineage["artefact"]["kind"] if lineage else "input"
        name = _named(path, kind)
        link = links.setdefault(name, Link(name, kind))
        link.files[path] = lineage
        link.sha256[path] = sha256 or (lineage["artefact"]["sha256"] if lineage else _checksum(results / path))
        link_of[path] = name
        waiting += [(entry["path"], entry["sha256"]) for entry in lineage["inputs"]] if lineage else []
    order = {kind: place for place, kind in enumerate(ORDER)}
    for link in links.values():
        link.path = link.path if len(link.files) > 1 else next(iter(link.files))
    link_of = {path: link.path for link in links.values() for path in link.files}
    found = _later_first(sorted(links.values(), key=lambda link: order.get(link.kind, len(order))), link_of)
    place = {link.path: number for number, link in enumerate(found)}
    for link in found:
        link.made_of = sorted(set(link.made_of), key=place.__getitem__)
    return found


def _later_first(links: list[Link], link_of: Mapping[str, str]) -> list[Link]:
    """Fill in what each link was made of, and order the links of a kind so that each stands before what it was made of."""
    by_name = {link.path: link for link in links}
    for link in links:
        read = [link_of[entry["path"]] for lineage in link.files.values() if lineage for entry in lineage["inputs"]]
        link.made_of = [name for name in read if name != link.path]
    depth: dict[str, int] = {}

    def below(name: str) -> int:
        if name not in depth:
            depth[name] = 0  # a circle of folders must not turn for ever
            depth[name] = 1 + max((below(part) for part in by_name[name].made_of), default=0)
        return depth[name]

    kinds = list(dict.fromkeys(link.kind for link in links))
    return sorted(links, key=lambda link: (kinds.index(link.kind), -below(link.path), link.path))
