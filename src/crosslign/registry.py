"""Registries: the implementations of one extension point, each in a module of its own, called as the YAML calls it."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeGuard, TypeVar

from crosslign.errors import InputError

T = TypeVar("T")
Entry = TypeVar("Entry")
REGISTER = "Write @NAME.register(version=1), with an integer from 1 up, above the function or class (docs/trust.md)"
MANY, LONG, SHOWN = 40, 350, 12
"""Of more allowed names than the first, or with more characters together than the second, a message lists the third number."""


def nearest(name: str, allowed: list[str]) -> str:
    """Return the allowed names, of many the nearest, with the nearest one to a misspelt name put forward."""
    if not allowed:
        return "there are none"
    name = str(name)  # a program may give anything
    close = get_close_matches(name, allowed, n=1) or get_close_matches(_snake(name), allowed, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    too_many = len(allowed) > MANY or sum(map(len, allowed)) > LONG
    shown = get_close_matches(name, allowed, n=SHOWN, cutoff=0) if too_many else allowed
    others = f" and {len(allowed) - len(shown)} others" if len(shown) < len(allowed) else ""
    return f"allowed: {', '.join(repr(one) if ',' in one else one for one in sorted(shown))}{others}{hint}"


def _snake(name: str) -> str:
    """Return a name of a class, as other programs call what we have (`LengthFilter`), in our way of writing (`length`)."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().removesuffix("_filter")


PLUGINS_VARIABLE = "CROSSLIGN_PLUGIN_MODULES"
"""Modules of plugins and their files, as JSON: a variable, since jobs and ranks are processes of their own."""


@functools.lru_cache(maxsize=1)
def _read_modules(text: str) -> Mapping[str, str]:
    return dict(json.loads(text)) if text else {}


def plugin_modules() -> Mapping[str, str]:
    """Return the modules that plugins add to the library's packages, with their files."""
    return _read_modules(os.environ.get(PLUGINS_VARIABLE, ""))


def use_modules(files: Mapping[str, Path]) -> None:
    """Add modules to the library's packages, in this process and in those that it starts, in place of others that were added so.

    Args:
        files: the file of each, by its dotted name, such as `crosslign.objectives.terms.mine`.
    """
    before = os.environ.pop(PLUGINS_VARIABLE, None)
    if files:
        os.environ[PLUGINS_VARIABLE] = json.dumps({name: str(path) for name, path in sorted(files.items())})
    if not files and before is None:
        return  # the library's own modules stay as they are: to parse them again takes half of the time of reading a configuration
    source_of.cache_clear()
    outline_of.cache_clear()
    version_of.cache_clear()
    names_in.cache_clear()


class _Finder(MetaPathFinder):
    """Finds the modules of plugins."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        file = plugin_modules().get(fullname)
        return importlib.util.spec_from_file_location(fullname, file) if file else None


sys.meta_path.append(_Finder())


@functools.cache
def source_of(module: str) -> Path | None:
    """Return a module's file; found by its name, since to ask for the spec of a submodule imports the packages above it."""
    if own := plugin_modules().get(module):
        return Path(own)
    package, *inner = module.split(".")
    if not all(part.isidentifier() and len(part) < 200 for part in inner):
        return None  # a lineage file may name anything
    spec = importlib.util.find_spec(package)
    for folder in spec.submodule_search_locations or () if spec else ():
        place = Path(folder, *inner)
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
    return None


def is_registering(decorator: ast.expr) -> TypeGuard[ast.Call]:
    """Tell whether a decorator of a syntax tree is a call of some registry's `register`."""
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute) and decorator.func.attr == "register"


def outline(path: Path) -> ast.Module:
    """Return the syntax tree of a module's file without what its functions do.

    Raises:
        InputError: it is no Python.
    """
    try:
        tree = ast.parse(path.read_bytes(), path.name)  # bytes: Python takes a byte order mark and a line that names the coding
    except (SyntaxError, ValueError) as error:
        raise InputError("not a Python module", where=str(path), why=str(error)) from error
    for node in tree.body:
        for part in [node, *node.body] if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(part, ast.FunctionDef):
                del part.body[1:]  # the first may be a docstring; the rest is most of a tree, and trees are kept
    return tree


@functools.cache
def outline_of(module: str) -> ast.Module:
    """Return the `outline` of a module, empty where there is none; nothing is imported."""
    path = source_of(module)
    return outline(path) if path else ast.Module([], [])


def registrations(tree: ast.Module) -> list[ast.Call]:
    """Return the calls of `register` above the classes and functions of a module."""
    return [call for node in tree.body for call in getattr(node, "decorator_list", ()) if is_registering(call)]


def registered(module: str) -> ast.ClassDef | ast.FunctionDef:
    """Return the class or function that a module registers.

    Raises:
        InputError: there is no such module, or it registers nothing.
    """
    for node in outline_of(module).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and any(map(is_registering, node.decorator_list)):
            return node
    raise InputError(f"{module} registers no version", where=str(source_of(module) or module), do=REGISTER)


@functools.cache
def version_of(module: str) -> int:
    """Return the version that a module registers its implementation under, read from its syntax tree: nothing is imported.

    Raises:
        InputError: there is no such module, or it registers no version.
    """
    for call in registrations(outline_of(module)):
        given = {keyword.arg: keyword.value for keyword in call.keywords}.get("version")
        if isinstance(given, ast.Constant) and type(given.value) is int and given.value > 0:
            return given.value
    raise InputError(f"{module} registers no version", where=str(source_of(module) or module), do=REGISTER)


@functools.cache
def names_in(package: str) -> list[str]:
    """Return the names of a package's implementations, sorted, with those of plugins; found as files, since to import takes long."""
    path = source_of(package)
    own = (one.stem for one in path.parent.glob("[!_]*.py")) if path else ()
    return sorted([*own, *(inner for outer, _, inner in (module.rpartition(".") for module in plugin_modules()) if outer == package)])


def since_first(version: int) -> dict[str, int]:
    """Return a version as part of a cache's key: none of the first, so that what was kept before there were versions is found."""
    return {"version": version} if version > 1 else {}


OWN = {
    "examples": {"builder", "from", "langs", "seed", "decontaminate", "decontaminate_by", "of", "teacher"},
    "views": {"builder", "from", "seed"},
    "terms": {"objective", "weight", "examples", "batch", "micro_batch"},
    "parts": {"kind", "learning_rate", "clip", "start_from"},
    "tasks": {"scorer", "texts", "output", "main", "averages", "readout", "lengths", "prefixes", "normalise", "footnote", "splits"},
}
"""Keys that belong to the entry itself; every other key of it is an option of the implementation that it names."""


def options_of(section: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of an entry that are options of its implementation."""
    return {key: value for key, value in entry.items() if key not in OWN[section]}


class Registry(Generic[T]):
    """Named implementations of one extension point.

    An implementation called `moses` is the function or class decorated with `register` in the module
    `moses` of the extension point's package; adding one is adding that module. Modules load when first asked for.

    Its version is a number that a person raises when results change: it alone, and not the code, makes what depends on the
    implementation again (docs/trust.md, What reruns).

    Args:
        kind: what is registered, in the singular, as error messages name it.
        package: dotted name of the extension point's package; modules that begin with `_` are helpers.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._entries: dict[str, T] = {}

    def register(self, *, version: int = 0, **declared: Any) -> Callable[[Entry], Entry]:
        """Return a decorator that files a function or class under the name of the module that defines it.

        Args:
            version: from 1 up, written as a plain number, since `version_of` reads it and nobody imports; 0 for what makes no results.
            declared: what else `config/signatures.py` reads, such as the shape of the rows that are made.
        """

        def file(entry: Entry) -> Entry:
            name = str(entry.__module__).rsplit(".", 1)[-1]
            if name in self._entries:
                raise ValueError(f"module {entry.__module__} registers two {self.kind}s")
            self._entries[name] = entry  # type: ignore[assignment]
            return entry

        return file

    def names(self) -> list[str]:
        """Return all names, sorted, with those of plugins."""
        return names_in(self.package)

    def module(self, name: str) -> str:
        """Return the dotted name of the module that implements `name`."""
        return f"{self.package}.{name}"

    def version(self, name: str) -> int:
        """Return the version of the implementation called `name`; errors as those of `version_of`."""
        return version_of(self.module(name))

    def get(self, name: str, where: str = "") -> T:
        """Return the implementation called `name`.

        Raises:
            InputError: there is none; names the nearest and all allowed ones.
        """
        if name not in self._entries:
            if name not in self.names():
                raise InputError(f"unknown {self.kind} {name!r}", where=where, why=nearest(name, self.names()))
            self._load(name)
        return self._entries[name]

    def _load(self, name: str) -> None:
        """Import a module; what a plugin's raises is its author's, and said with its place."""
        module = self.module(name)
        try:
            importlib.import_module(module)
        except Exception as error:
            if module not in plugin_modules():
                raise
            path, why = plugin_modules()[module], f"{type(error).__name__}: {error}"
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
            do = "Fix it; it may import the library and installed packages, but no module beside it"
            raise InputError("the plugin's module cannot be loaded", where=f"{path}:{lines[-1] if lines else 1}", why=why, do=do) from error
