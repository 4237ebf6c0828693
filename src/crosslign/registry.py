"""Registries: the implementations of one seam, each in a module of its own, called as the YAML calls it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from difflib import get_close_matches
from typing import Generic, TypeVar

from crosslign.errors import InputError

T = TypeVar("T")
Entry = TypeVar("Entry")
MANY, SHOWN = 40, 12
"""Of more allowed names than the first, a message lists the second number."""


def nearest(name: str, allowed: list[str]) -> str:
    """Return the allowed names, of many the nearest, with the nearest one to a misspelt name put forward."""
    if not allowed:
        return "there are none"
    close = get_close_matches(name, allowed, n=1) or get_close_matches(_snake(name), allowed, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    shown = get_close_matches(name, allowed, n=SHOWN, cutoff=0) if len(allowed) > MANY else allowed
    others = f" and {len(allowed) - len(shown)} others" if len(shown) < len(allowed) else ""
    return f"allowed: {', '.join(repr(one) if ',' in one else one for one in sorted(shown))}{others}{hint}"


def _snake(name: str) -> str:
    """Return a name of a class, as other programs call what we have (`LengthFilter`), in our way of writing (`length`)."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().removesuffix("_filter")


class Registry(Generic[T]):
    """Named implementations of one seam.

    An implementation called `moses` is the function or class decorated with `register` in the module
    `moses` of the seam's package; adding one is adding that module. Modules load when first asked for.

    Args:
        kind: what is registered, in the singular, as error messages name it.
        package: dotted name of the seam's package; modules that begin with `_` are helpers.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._entries: dict[str, T] = {}

    def register(self, entry: Entry) -> Entry:
        """File a function or class under the name of the module that defines it (a decorator)."""
        name = str(entry.__module__).rsplit(".", 1)[-1]
        if name in self._entries:
            raise ValueError(f"module {entry.__module__} registers two {self.kind}s")
        self._entries[name] = entry  # type: ignore[assignment]
        return entry

    def names(self) -> list[str]:
        """Return all names, sorted."""
        package = importlib.import_module(self.package)
        return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))

    def module(self, name: str) -> str:
        """Return the dotted name of the module that implements `name`."""
        return f"{self.package}.{name}"

    def get(self, name: str, where: str = "") -> T:
        """Return the implementation called `name`.

        Raises:
            InputError: there is none; names the nearest and all allowed ones.
        """
        if name not in self._entries:
            if name not in self.names():
                raise InputError(f"unknown {self.kind} {name!r}", where=where, why=nearest(name, self.names()))
            importlib.import_module(self.module(name))
        return self._entries[name]
