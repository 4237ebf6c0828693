"""YAML 1.2 files with line numbers: duplicate keys are refused, `no` stays Norwegian, `1e-5` is a number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from crosslign.errors import InputError

MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 500_000


@dataclass(frozen=True)
class YamlFile:
    """One file's content as plain dicts and lists, and where each key stands.

    Attributes:
        path: the file, as messages name it.
        content: plain Python values.
        lines: line number (from 1) of each key, by its path of keys and indices.
    """

    path: Path
    content: Any
    lines: Mapping[tuple[str | int, ...], int]

    def where(self, keys: Sequence[str | int]) -> str:
        """Return `file:line: key.path` of the deepest known ancestor of `keys`."""
        keys = tuple(keys)
        dotted = ".".join(map(str, keys))
        for length in range(len(keys), 0, -1):
            if keys[:length] in self.lines:
                return f"{self.path}:{self.lines[keys[:length]]}: {dotted}"
        return f"{self.path}: {dotted}" if dotted else str(self.path)


class _Plain:
    """Turns a loaded tree into plain values; counts nodes, so that an alias bomb ends here."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[tuple[str | int, ...], int] = {}
        self.nodes = 0

    def convert(self, node: Any, at: tuple[str | int, ...]) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise InputError(
                "YAML expands to too many values", where=str(self.path), why=f"more than {MAX_NODES:,}", do="Remove the nested aliases"
            )
        if isinstance(node, CommentedMap):
            for key in node:
                if not isinstance(key, str):
                    raise InputError(f"key {key!r} is not text", where=str(self.path), do="Put it in quotes")
                self.lines[(*at, key)] = node.lc.key(key)[0] + 1 if key in node.lc.data else 0
            return {key: self.convert(value, (*at, key)) for key, value in node.items()}
        if isinstance(node, CommentedSeq):
            for index in range(len(node)):
                if index in node.lc.data:
                    self.lines[(*at, index)] = node.lc.item(index)[0] + 1
            return [self.convert(value, (*at, index)) for index, value in enumerate(node)]
        return self._scalar(node, at)

    def _scalar(self, node: Any, at: tuple[str | int, ...]) -> Any:
        if isinstance(node, float) and not math.isfinite(node):
            raise InputError("not a finite number", where=YamlFile(self.path, None, self.lines).where(at), why=f"found {float(node)}")
        if node is not None and not isinstance(node, bool | int | float | str | date):
            raise InputError("tags are not allowed", where=YamlFile(self.path, None, self.lines).where(at), do="Write plain values")
        return _scalar(node)


def _scalar(node: Any) -> Any:
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def load_yaml(path: Path, shown: Path | None = None) -> YamlFile:
    """Read one YAML file.

    Args:
        path: the file.
        shown: the name that messages use, where it differs (relative to the project).

    Raises:
        InputError: missing, too large, not YAML 1.2, a duplicate key, a tag, a non-text key; names file and line.
    """
    shown = shown or path
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError("file is missing", where=str(shown)) from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", where=str(shown), why=str(error)) from error
    if len(text) > MAX_BYTES:
        raise InputError("file is too large for a configuration", where=str(shown), why=f"{len(text):,} characters")
    yaml = YAML(typ="rt")
    yaml.version = (1, 2)
    yaml.allow_duplicate_keys = False
    try:
        tree = yaml.load(text)
    except DuplicateKeyError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise InputError("a key stands twice", where=f"{shown}:{line}", why=str(error.problem).split("\n")[0]) from error
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise InputError("not valid YAML", where=f"{shown}:{line}", why=str(error.problem)) from error
    except (YAMLError, ValueError) as error:
        raise InputError("not valid YAML", where=str(shown), why=str(error).splitlines()[0]) from error
    if "!!python" in text or "!<" in text:
        raise InputError("tags are not allowed", where=str(shown), do="Write plain values")
    plain = _Plain(shown)
    return YamlFile(shown, plain.convert({} if tree is None else tree, ()), plain.lines)
