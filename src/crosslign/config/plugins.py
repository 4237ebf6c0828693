"""Plugins: folders outside the project, each of one YAML file and the modules that it declares (docs/add-a-method.md)."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from crosslign.config import layers
from crosslign.config.project import SECTIONS
from crosslign.config.schema import SCHEMAS, check, extend_options, schemas_of
from crosslign.config.yaml_files import YamlFile, load_yaml
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.home import with_home
from crosslign.registry import is_registering, nearest, use_modules, version_of

ENTRY_POINTS = "crosslign.plugins"
"""Group of entry points by which an installed package names the package of its plugin."""
SEAMS = {
    "objectives": "objectives.terms",
    "parts": "objectives.parts",
    "readers": "corpora.readers",
    "filters": "corpora.filters",
    "scorers": "tasks.scorers",
}
"""Packages of the extension points that a plugin may add to, below `crosslign`, by their names in `options:`."""
CALLED_BY_OPTIONS = ("objectives", "parts")
"""Extension points whose options are the keyword arguments of a class."""


@dataclass(frozen=True)
class Plugin:
    """One plugin.

    Attributes:
        name: that of its YAML file, and of its entries' file among the papers.
        folder: where it lies.
        file: its YAML file, checked.
    """

    name: str
    folder: Path
    file: YamlFile

    def modules(self) -> Iterator[tuple[str, str, Path]]:
        """Yield extension point, name and file of everything that it implements."""
        for seam, named in self.file.content.get("options", {}).items():
            yield from ((seam, name, self.folder / f"{name}.py") for name in named)


def _installed() -> Iterator[Path]:
    """Yield the folders of the plugins that installed packages bring, by the names of their entry points."""
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda one: one.name):
        spec = importlib.util.find_spec(point.value)
        yield from map(Path, list(spec.submodule_search_locations or ())[:1] if spec else ())


def _read(folder: Path, where: str) -> Plugin:
    found = sorted(folder.glob("[!.]*.yaml")) if folder.is_dir() else []
    if len(found) != 1:
        why = f"{number_of(len(found), 'YAML file')} in it" if folder.is_dir() else "there is no such folder"
        raise InputError("no plugin", where=f"{where}: {folder}", why=why, do="Name a folder of one YAML file and its modules")
    file = load_yaml(found[0], found[0])
    check(file, SCHEMAS, "plugin")
    return Plugin(found[0].stem, folder, file)


def _check_name(root: Path, plugin: Plugin, names: Iterable[str]) -> None:
    if plugin.name in names or plugin.name in layers.names_of(root, "papers"):
        why = "another plugin has it, or a file among the papers"
        raise InputError(f"the name {plugin.name!r} is taken", where=str(plugin.file.path), why=why, do="Rename the file")


def _arguments(tree: ast.Module) -> list[str] | None:
    """Return the arguments of the constructor of a module's registered class; none where it has no constructor of its own."""
    marked = (node for node in tree.body if isinstance(node, ast.ClassDef) and any(map(is_registering, node.decorator_list)))
    made = [part for node in marked for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
    return [one.arg for one in [*made[0].args.args[1:], *made[0].args.kwonlyargs]] if made else None


def _check_module(plugin: Plugin, seam: str, name: str, path: Path, own: Mapping[str, Any]) -> None:
    """Refuse a module that is not there, does not register itself, has the name of another, or takes other options than it declares."""
    where = plugin.file.where(("options", seam, name))
    if name in own:
        raise InputError(f"the name {name!r} is taken", where=where, why=f"the library has one among its {seam}")
    if not path.is_file():
        raise InputError("module is missing", where=where, why=str(path), do=f"Write it, or take {name} out of `options`")
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise InputError("not a module of Python", where=str(path), why=str(error)) from error
    version_of(f"crosslign.{SEAMS[seam]}.{name}")
    taken = _arguments(tree) if seam in CALLED_BY_OPTIONS else None
    declared = list(plugin.file.content["options"][seam][name]["properties"])
    if taken is not None and (other := sorted(set(taken) ^ set(declared))):
        why = f"the module takes {', '.join(taken) or 'none'}, the file declares {', '.join(declared) or 'none'}"
        raise InputError(f"the options of {name} differ at {other[0]!r}", where=where, why=why)


def use_plugins(root: Path, folders: Sequence[str]) -> list[Plugin]:
    """Switch the plugins of a configuration on, and those of installed packages; others of before are switched off.

    Args:
        root: the project's folder; a relative folder is below the working folder, or else below it.
        folders: `plugins:` of the configuration.

    Raises:
        InputError: a folder that is no plugin, or what its file or its modules have wrong.
    """
    use_modules({})
    extend_options({})
    layers.use_files({})
    found: dict[str, Plugin] = {}
    named = [(with_home(folder), "plugins") for folder in folders]
    named = [(path if path.exists() or not (root / path).exists() else root / path, where) for path, where in named]
    for folder, where in [*((path, "installed package") for path in _installed()), *named]:
        plugin = _read(folder, where)
        _check_name(root, plugin, found)
        found[plugin.name] = plugin
    if modules := [(plugin, *module) for plugin in found.values() for module in plugin.modules()]:
        known = {seam: dict(schema["properties"]) for seam, schema in schemas_of(SCHEMAS)["options"]["$defs"].items() if seam in SEAMS}
        use_modules({f"crosslign.{SEAMS[seam]}.{name}": path.absolute() for _, seam, name, path in modules})
        for plugin, seam, name, path in modules:
            _check_module(plugin, seam, name, path, known[seam])
            known[seam][name] = plugin.file.content["options"][seam][name]
        extend_options(known)
    layers.use_files({plugin.name: plugin.file for plugin in found.values()})
    return list(found.values())


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


def note_of(plugin: Plugin) -> str:
    """Return what a run says of a plugin: its file, and what it implements in which version."""
    made = [f"{name}@{version_of(f'crosslign.{SEAMS[seam]}.{name}')}" for seam, name, _ in plugin.modules()]
    return f"plugin {plugin.file.path}" + (f": {' '.join(made)}" if made else "")
