"""Files of the configuration in layers: the library's catalog, and over it the project's own, which adds or replaces whole entries."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosslign.config.yaml_files import YamlFile, load_yaml
from crosslign.errors import InputError
from crosslign.files.checksums import sha256_folder
from crosslign.files.home import cache_folder
from crosslign.files.walk import files_below
from crosslign.paths import CATALOG
from crosslign.registry import nearest

OWN = "config"
"""Folder of the project's own layer."""
PARTS = {"corpora.yaml": ("sources", "corpora"), "encoders.yaml": ("encoders", "readouts"), "tasks.yaml": ("tasks",)}
"""Sections of a plugin's file that belong to a file of the configuration; all others but `rows` to one of its papers."""
_PLUGINS: dict[str, YamlFile] = {}
Prepare = Callable[[YamlFile], YamlFile]
Check = Callable[[YamlFile], None]


def as_read(file: YamlFile) -> YamlFile:
    """Return a file as it is."""
    return file


def unchecked(_: YamlFile) -> None:
    """Take any file: another process of the run has checked it."""


def use_files(files: Mapping[str, YamlFile]) -> None:
    """Lay the files of plugins, by name, between the catalog and the project's own, in place of those before."""
    _PLUGINS.clear()
    _PLUGINS.update(files)


def _of_plugins(name: str) -> Iterator[YamlFile]:
    """Yield what plugins have of a file of the configuration."""
    others = {"rows", *(section for sections in PARTS.values() for section in sections)}
    for plugin, file in _PLUGINS.items():
        own = set(file.content) - others if name == f"papers/{plugin}.yaml" else set(PARTS.get(name, ())) & set(file.content)
        if own:
            yield replace(file, content={section: entries for section, entries in file.content.items() if section in own})


def _places(root: Path, name: str) -> Iterator[tuple[Path, Path]]:
    """Yield the file of each layer that has one, lowest first, and what messages call it."""
    catalog = CATALOG / name
    shown = catalog.relative_to(root.absolute()) if catalog.is_relative_to(root.absolute()) else catalog
    yield from (pair for pair in ((catalog, shown), (root / OWN / name, Path(OWN, name))) if pair[0].is_file())


@functools.cache
def _library_sum() -> str:
    """Return the checksum of all that decides whether a file of the catalog passes its checks: the library's own files."""
    library = CATALOG.parent
    return sha256_folder(library, [file for file in files_below(library) if file.suffix in (".py", ".yaml")])


def _note(path: Path) -> Path | None:
    """Return where it is noted that a file of the catalog has passed; None where nobody knows the home folder."""
    try:
        return cache_folder() / "checked" / _library_sum() / path.relative_to(CATALOG)
    except InputError:
        return None


@functools.cache
def _from_catalog(path: Path, shown: Path, prepare: Prepare, check: Check) -> YamlFile:
    """Return a file of the catalog, checked where this library has not done it on this machine: all checks take two seconds."""
    file = prepare(load_yaml(path, shown))
    if check is unchecked:
        return file
    note = _note(path)
    if note and os.access(note, os.F_OK):
        return file
    check(file)
    if note:
        with suppress(OSError):  # where no note can be kept, each command checks
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()
    return file


def load_layers(root: Path, name: str, prepare: Prepare = as_read, check: Check = unchecked) -> YamlFile:
    """Return a file of the configuration with all layers joined.

    Args:
        root: the project's folder.
        name: its place below `config/` and in the catalog, such as `papers/mpcl.yaml`.
        prepare: what is done with the file of each layer before they are joined; with the catalog's once a process.
        check: raises where a layer's file is wrong; the catalog's is checked once a version of the library.

    Raises:
        InputError: no layer has it, or `load_yaml`, `prepare` or `check` refuse one.
    """

    def own(read: YamlFile) -> YamlFile:
        file = prepare(read)
        check(file)
        return file

    files = [
        _from_catalog(path, shown, prepare, check) if path == CATALOG / name else own(load_yaml(path, shown))
        for path, shown in _places(root, name)
    ]
    files[1 if (CATALOG / name).is_file() else 0 : 0] = map(own, _of_plugins(name))
    if not files:
        raise InputError("file is missing", where=f"{OWN}/{name}")
    joined = files[0]
    for file in files[1:]:
        joined = _laid_over(joined, file)
    if not isinstance(joined.content, Mapping):
        return joined
    # The catalog's is kept for the whole process: who adds an entry to a project adds it to that project alone.
    return replace(joined, content={name: dict(part) if isinstance(part, Mapping) else part for name, part in joined.content.items()})


def _laid_over(below: YamlFile, above: YamlFile) -> YamlFile:
    """Lay one file over another: sections are joined, an entry of the upper one takes the place of that of its name."""
    if not isinstance(above.content, Mapping) or not isinstance(below.content, Mapping):
        return above
    content: dict[str, Any] = dict(below.content)
    taken: set[tuple[str | int, ...]] = set()
    replaced, added = dict(below.replaced), dict(below.added)
    for section, entries in above.content.items():
        before = content.get(section, {})
        both = isinstance(entries, Mapping) and isinstance(before, Mapping)
        content[section] = {**before, **entries} if both else entries
        taken.update(((section, name) for name in entries) if both and section in below.content else ((section,),))
        for name in entries if both else ():
            if name not in before:
                added[f"{section}.{name}"] = above.path
            elif before[name] != entries[name]:
                replaced[f"{section}.{name}"] = above.path
    lines = {at: line for at, line in below.lines.items() if at[:1] not in taken and at[:2] not in taken}
    lines.update({at: line for at, line in above.lines.items() if at[:1] in taken or at[:2] in taken})
    return YamlFile(below.path, content, lines, {**below.origins, **dict.fromkeys(taken, above.path)}, replaced, added)


def names_of(root: Path, folder: str) -> list[str]:
    """Return the names of the files of a folder, such as `papers`, in any layer, sorted."""
    found = {path.stem for place in (CATALOG, root / OWN) for path in (place / folder).glob("[!.]*.yaml")}
    return sorted(found | {name for name in _PLUGINS if any(True for _ in _of_plugins(f"{folder}/{name}.yaml"))})


def file_called(root: Path, folder: str, name: str, where: str) -> str:
    """Return the place of a file of a folder, such as `papers/mpcl.yaml`.

    Raises:
        InputError: no layer has it; names the nearest.
    """
    allowed = names_of(root, folder)
    if name not in allowed:
        raise InputError(f"unknown {folder.rstrip('s')} {name!r}", where=where, why=nearest(name, allowed))
    return f"{folder}/{name}.yaml"
