"""Reruns: whether an artefact's lineage equals what its job would be given now.

Not the time stamps, and not what the workflow engine remembers: a results folder that was copied or moved has its lineage with it.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.config.entry_keys import TRAIN_DEFAULTS, completed
from crosslign.config.mining import DEFAULTS
from crosslign.config.versions import raised
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.lineage import beside_recipe, is_sidecar, lineage_path, named, read_lineage
from crosslign.files.own import OwnSums, changed_ns
from crosslign.files.walk import is_there, passing_gone
from crosslign.provenance.causes import ABSENT, changed_keys

Change = tuple[str, str]
"""What was, and what would be now, in words."""
LARGEST = 1_000_000
"""Bytes of a described file up to which one that is newer than what was made of it is hashed; of a larger one its size is compared."""


@dataclass(frozen=True)
class Asked:
    """A job as the project asks for it now.

    Attributes:
        outputs: what it makes, or those of them that are asked about.
        inputs: what it reads.
        copied: files of the user's own that its one output is a copy of, or was made of, and that may go afterwards.
        params: parameters of its rule.
    """

    outputs: Sequence[Path]
    inputs: Sequence[Path]
    copied: Sequence[Path]
    params: Mapping[str, Any]


def _short(value: Any) -> str:
    text = ABSENT if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"


def _keys(name: str, before: Any, now: Any) -> Iterator[Change]:
    for key, old, new in changed_keys(before, now, name):
        yield f"{key} {_short(old)}", f"{key} {_short(new)}"


def _recipe(before: Any, now: Any) -> Any:
    """Return an earlier recipe with the keys that have come up since, at their defaults."""
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        return before
    if "train" in before and "train" in now:
        return {**before, "train": completed(before["train"], now["train"], TRAIN_DEFAULTS)}
    return completed(before, now, DEFAULTS) if "mine" in now else before


def _settings(lineage: Mapping[str, Any], params: Mapping[str, Any]) -> Iterator[Change]:
    """Yield what differs in a job's own settings. What an older lineage does not hold was not noted, and nothing is known of it."""
    recipe = json.loads(json.dumps(params.get("recipe")))
    yield from raised(str(lineage.get("version", "")), str(params.get("version", "")))
    yield from _keys("", _recipe(lineage["recipe"], recipe), recipe)
    for name in ("seed", "threads"):
        if name in params and params[name] != lineage[name]:
            yield f"{name} {lineage[name]}", f"{name} {params[name]}"
    known = lineage.get("settings", {})
    for name, value in json.loads(json.dumps(beside_recipe(params, Path(params["root"])))).items():
        yield from _keys(name, known.get(name, value), value)


@dataclass
class Reruns:
    """Says of jobs why they would run again; what it has read of files it keeps."""

    _read: dict[Path, Mapping[str, Any] | None] = field(default_factory=dict)
    _hashes: dict[tuple[Path, ...], str] = field(default_factory=dict)

    def _lineage(self, path: Path) -> Mapping[str, Any] | None:
        """Return what describes a file or folder; None where nothing does, or nothing that this version can read."""
        if path not in self._read:
            try:
                self._read[path] = read_lineage(path)
            except InputError:
                self._read[path] = None
        return self._read[path]

    def _sum(self, root: Path, paths: Sequence[Path]) -> str:
        key = tuple(paths)
        if key not in self._hashes:
            self._hashes[key] = OwnSums(root).of_all(paths)
        return self._hashes[key]

    def described(self, outputs: Iterable[Path]) -> bool:
        """Tell whether lineage can decide: each of a job's outputs that lies there has some, and there is one."""
        there = [path for path in outputs if is_there(path) or is_there(lineage_path(path))]
        return bool(there) and all(self._lineage(path) for path in there)

    def why(self, asked: Asked) -> list[Change]:
        """Return what has changed since a job's outputs were made; nothing where they are what it would make."""
        found: dict[Change, None] = {}
        for output in asked.outputs:
            if lineage := self._lineage(output):
                found |= dict.fromkeys(_settings(lineage, asked.params))
                found |= dict.fromkeys(self._inputs(output, lineage, asked))
        return list(found)

    def _inputs(self, output: Path, lineage: Mapping[str, Any], asked: Asked) -> Iterator[Change]:
        root = Path(asked.params["root"])
        before, now = defaultdict[str, list[str]](list), defaultdict[str, list[Path]](list)
        for entry in lineage["inputs"]:
            before[entry["path"]].append(entry["sha256"])
        for path in sorted(set(asked.inputs)):  # as lineage lists them; files outside of the results can have the same name
            now[named(path, root)].append(path)
        if gone := sorted(name for name in before if len(before[name]) > len(now.get(name, ()))):
            yield f"read {', '.join(gone[:3])}", ABSENT
        if new := sorted(name for name in now if len(now[name]) > len(before.get(name, ()))):
            yield ABSENT, f"reads {', '.join(new[:3])}"
        for name in sorted(before.keys() & now.keys()):
            for path, sha256 in zip(now[name], before[name], strict=False):
                yield from self._changed(name, path, sha256, output, root)
        there = [path for path in asked.copied if is_there(path)]
        if there:
            noted = str(lineage.get("own") or lineage["artefact"]["sha256"])
            yield from self._own(os.path.commonpath(there), there, noted, output, root)

    def _changed(self, name: str, path: Path, sha256: str, output: Path, root: Path) -> Iterator[Change]:
        """Yield how an input differs from what was read: by its lineage; by its bytes where it is newer, or lineage itself."""
        lineage = self._lineage(path) if is_there(path) else None
        if lineage is None and not is_sidecar(path):
            yield from self._own(name, [path], sha256, output, root)
            return
        found = str(lineage["artefact"]["sha256"]) if lineage else sha256
        with passing_gone():  # the engine itself asks whether it is there
            if found == sha256 and path.is_file() and (is_sidecar(path) or _newer(path.stat().st_mtime_ns, output)):
                size = path.stat().st_size
                if lineage and size > LARGEST:
                    found = sha256 if size == lineage["artefact"]["bytes"] else f"of {number_of(size, 'byte')}"
                else:
                    found = self._sum(root, [path])
        if found != sha256:
            yield f"{name} {sha256[:12]}", f"{name} {found[:12]}"

    def _own(self, name: str, paths: Sequence[Path], sha256: str, output: Path, root: Path) -> Iterator[Change]:
        """Yield how files of the user's own differ from what was read; they are hashed where one of them is newer."""
        with passing_gone():
            if all(path.is_file() for path in paths) and any(_newer(changed_ns(path), output) for path in paths):
                found = self._sum(root, paths)
                if found != sha256:
                    yield f"{name} {sha256[:12]}", f"{name} {found[:12]}"


def _newer(changed: int, output: Path) -> bool:
    """Tell whether a file was changed after what was made of it; of an output that was removed since, after its lineage."""
    made = output if is_there(output) else lineage_path(output)
    return is_there(made) and changed > made.stat().st_mtime_ns
