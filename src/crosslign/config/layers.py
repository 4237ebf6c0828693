"""Files of the configuration in layers: the library's catalog, and over it the project's own, which adds or replaces whole entries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosslign.config.yaml_files import YamlFile, load_yaml
from crosslign.errors import InputError
from crosslign.paths import CATALOG
from crosslign.registry import nearest

OWN = "config"
"""Folder of the project's own layer."""
PARTS = {"corpora.yaml": ("sources", "corpora"), "encoders.yaml": ("encoders", "readouts"), "tasks.yaml": ("tasks",)}
"""Sections of a plugin's file that belong to a file of the configuration; all others but `rows` to one of its papers."""
_PLUGINS: dict[str, YamlFile] = {}


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
def _from_catalog(path: Path, shown: Path, prepare: Callable[[YamlFile], YamlFile]) -> YamlFile:
    return prepare(load_yaml(path, shown))


def load_layers(root: Path, name: str, prepare: Callable[[YamlFile], YamlFile] = lambda file: file) -> YamlFile:
    """Return a file of the configuration with all layers joined.

    Args:
        root: the project's folder.
        name: its place below `config/` and in the catalog, such as `papers/mpcl.yaml`.
        prepare: what is done with the file of each layer, and how it is checked, before they are joined; with the catalog's once a process.

    Raises:
        InputError: no layer has it, or `load_yaml` or `prepare` refuse one.
    """
    files = [
        _from_catalog(path, shown, prepare) if path == CATALOG / name else prepare(load_yaml(path, shown))
        for path, shown in _places(root, name)
    ]
    files[1 if (CATALOG / name).is_file() else 0 : 0] = map(prepare, _of_plugins(name))
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
