"""Plugins: folders outside the project, each of one YAML file and the modules beside it (docs/add-a-method.md)."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from crosslign.config import layers
from crosslign.config.project import SECTIONS
from crosslign.config.schema import check
from crosslign.config.signatures import IMPLEMENTATIONS
from crosslign.config.yaml_files import YamlFile, load_yaml
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.home import with_home
from crosslign.registry import is_registering, nearest, outline, registrations, use_modules, version_of

ENTRY_POINTS = "crosslign.plugins"
"""Group of entry points by which an installed package names the package of its plugin."""
PACKAGE = "installed package"
NAME = re.compile("[a-z][a-z0-9_]{0,60}")
REGISTRIES = {
    "OBJECTIVES": "objectives",
    "PARTS": "parts",
    "READERS": "readers",
    "EVALUATIONS": "evaluations",
    "FILTERS": "filters",
    "SCORERS": "scorers",
}
"""Extension points that a plugin may add to, by their registries."""


@dataclass(frozen=True)
class Plugin:
    """One plugin.

    Attributes:
        name: that of its YAML file, and of its entries' file among the papers.
        folder: where it lies.
        file: its YAML file, checked.
        modules: file of everything that it implements, by extension point and name.
        installed: a package brings it, so that nobody named it for this run.
    """

    name: str
    folder: Path
    file: YamlFile
    modules: Mapping[tuple[str, str], Path]
    installed: bool = False

    def lacks(self, systems: Iterable[str]) -> list[str]:
        """Return the systems that its own are like, but for its own and these."""
        own = self.file.content.get("systems", {})
        return sorted({str(entry["like"]) for entry in own.values() if "like" in entry} - {*own, *systems})


def _modules(folder: Path) -> Iterator[tuple[tuple[str, str], Path]]:
    """Yield the modules of a folder that register something, each under the extension point and the name that it has there."""
    for path in sorted(folder.glob("*.py")):
        calls = registrations(tree := outline(path))
        for call in calls:
            registry = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            if registry not in REGISTRIES:
                why = nearest(registry, list(REGISTRIES))
                raise InputError(f"a plugin cannot add to {registry}", where=f"{path}:{call.lineno}", why=why)
            if not NAME.fullmatch(path.stem):
                raise InputError(
                    f"{path.stem!r} cannot be named in YAML", where=str(path), do="Rename it: lower-case letters, digits and `_`"
                )
            if len(calls) > 1:
                raise InputError(
                    "a module registers one function or class", where=f"{path}:{calls[1].lineno}", do="Cut it into two modules"
                )
            if REGISTRIES[registry] == "objectives":
                _check_objective(tree, path)
            yield (REGISTRIES[registry], path.stem), path


def _check_objective(tree: ast.Module, path: Path) -> None:
    """Refuse an objective that lacks what every training calls, unless it has it from a class that it is made of."""
    (node,) = (one for one in tree.body if any(map(is_registering, getattr(one, "decorator_list", ()))))
    named = {getattr(part, "name", "") for part in getattr(node, "body", ())}
    if isinstance(node, ast.FunctionDef) or (not getattr(node, "bases", ()) and (lacking := {"inputs", "loss"} - named)):
        what = "no class" if isinstance(node, ast.FunctionDef) else f"no method {min(lacking)!r}"
        do = "Write a class with `shape`, `inputs` and `loss` (docs/add-a-method.md)"
        raise InputError(f"an objective has {what}", where=f"{path}:{node.lineno}", do=do)


def _installed() -> Iterator[Path]:
    """Yield the folders of the plugins that installed packages bring, by the names of their entry points.

    Raises:
        InputError: an entry point that names no package, or one that cannot be found.
    """
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda one: one.name):
        why = "it is not a package"
        try:
            spec = importlib.util.find_spec(point.module)
        except Exception as error:  # a package above it runs code of its own
            spec, why = None, f"{type(error).__name__}: {error}"
        folders = list(spec.submodule_search_locations or ()) if spec else []
        if not folders:
            do = "Make it name the package that contains the plugin's YAML file and modules, or uninstall the package that defines it"
            raise InputError(f"the entry point {point.name!r} names no plugin", where=f"{ENTRY_POINTS}: {point.value}", why=why, do=do)
        yield Path(folders[0])


def _read(folder: Path, where: str) -> Plugin:
    found = sorted(folder.glob("[!.]*.yaml")) if folder.is_dir() else []
    if len(found) != 1:
        why = f"{number_of(len(found), 'YAML file')} in it" if folder.is_dir() else "there is no such folder"
        raise InputError("not a plugin", where=f"{where}: {folder}", why=why, do="Name a folder that has one YAML file and its modules")
    file = load_yaml(found[0], found[0])
    check(file, "plugin")
    return Plugin(found[0].stem, folder, file, dict(_modules(folder)), installed=where == PACKAGE)


def _check_name(root: Path, plugin: Plugin, names: Iterable[str]) -> None:
    if plugin.name in names or plugin.name in layers.names_of(root, "papers"):
        why = "another plugin or a file in config/papers has it"
        raise InputError(f"the name {plugin.name!r} is taken", where=str(plugin.file.path), why=why, do="Rename the file")


def use_plugins(root: Path, folders: Sequence[str]) -> list[Plugin]:
    """Switch the plugins of a configuration on, and those of installed packages; others of before are switched off.

    Args:
        root: the project's folder; a relative folder is below the working folder, or else below it.
        folders: `plugins:` of the configuration.

    Raises:
        InputError: a folder that is not a plugin, or what its file or its modules have wrong.
    """
    use_modules({})
    layers.use_files({})
    found: dict[str, Plugin] = {}
    named = [(with_home(folder), "plugins") for folder in folders]
    named = [(path if path.exists() or not (root / path).exists() else root / path, where) for path, where in named]
    for folder, where in [*((path, PACKAGE) for path in _installed()), *named]:
        plugin = _read(folder, where)
        _check_name(root, plugin, found)
        found[plugin.name] = plugin
    _use(found.values())
    layers.use_files({plugin.name: plugin.file for plugin in found.values()})
    return list(found.values())


def _use(plugins: Iterable[Plugin]) -> None:
    """Add the modules of plugins to the library's; refuse one of a name that is taken."""
    taken = {(point, name) for point in REGISTRIES.values() for name in IMPLEMENTATIONS[point]}
    files: dict[str, Path] = {}
    for (point, name), path in (module for plugin in plugins for module in plugin.modules.items()):
        if (point, name) in taken:
            why = f"the library or another plugin has this name among its {point}"
            raise InputError(f"the name {name!r} is taken", where=str(path), why=why, do="Rename the module")
        taken.add((point, name))
        files[IMPLEMENTATIONS[point].module(name)] = path.absolute()
    use_modules(files)


def papers_of(plugins: Sequence[Plugin]) -> list[str]:
    """Return the names of the plugins that have entries of papers."""
    return [plugin.name for plugin in plugins if set(SECTIONS) & set(plugin.file.content)]


def with_rows(plugins: Sequence[Plugin], joined: Mapping[str, dict[str, Any]], encoders: Iterable[str]) -> dict[str, Any]:
    """Return the tables of all papers with the rows that plugins put below theirs.

    Raises:
        InputError: a row of a system that there is not.
    """
    tables, systems = dict(joined["tables"]), [*joined["systems"], *encoders]
    for plugin in plugins:
        for name, rows in plugin.file.content.get("rows", {}).items():
            for index, row in enumerate(rows):
                if (system := row.get("system", "").partition("+")[0]) not in ("", *systems) and "*" not in system:
                    where = plugin.file.where(("rows", name, index, "system"))
                    raise InputError(f"unknown system {system!r}", where=where, why=nearest(system, systems))
            if name in tables:
                tables[name] = {**tables[name], "rows": [*tables[name]["rows"], *rows]}
    return tables


def note_of(plugin: Plugin, lacking: Sequence[str] = ()) -> str:
    """Return what a run says of a plugin: its file, what it implements in which version, and the systems for lack of which it has none."""
    made = [f"{name}@{version_of(IMPLEMENTATIONS[point].module(name))}" for point, name in plugin.modules]
    without = f"; without its systems, which are like {', '.join(lacking)} of papers outside this run" if lacking else ""
    return f"plugin {plugin.file.path}" + (f": {' '.join(made)}" if made else "") + without
