"""YAML 1.2 files with line numbers: duplicate keys are refused, `no` stays Norwegian, `1e-5` is a number.

The tree is built from the events of PyYAML's parser (libyaml, in C), not by a library's own loader: one that knows lines and YAML 1.2 takes
seconds for the project's files, being pure Python. What an unquoted word stands for is asked of ruamel.yaml, which knows YAML 1.2.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.text import read_text

MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 500_000
MAX_DEPTH = 100
LARGEST = 2**63 - 1
"""Of whole numbers: what a seed or a size may be in the libraries that take it."""
MERGE = "<<"
TEXTS = (":str", ":merge", ":value")
"""Ends of the tags of words that stand for themselves: `<<` and `=` do in a value."""


@dataclass(frozen=True)
class YamlFile:
    """One file's content as plain dicts and lists, and where each key stands.

    Attributes:
        path: the file, as messages name it.
        content: plain Python values.
        lines: line number (from 1) of each key, by its path of keys and indices.
        origins: file of each section and of each entry of a section, where not all come from `path`.
        replaced: entries of lower layers in the place of which others stand, such as `tasks.tatoeba`, by the file of these.
        added: entries of upper layers that no lower one has, in the same way.
    """

    path: Path
    content: Any
    lines: Mapping[tuple[str | int, ...], int]
    origins: Mapping[tuple[str | int, ...], Path] = field(default_factory=dict)
    replaced: Mapping[str, Path] = field(default_factory=dict)
    added: Mapping[str, Path] = field(default_factory=dict)

    def origin(self, keys: Sequence[str | int]) -> Path:
        """Return the file that a key stands in."""
        keys = tuple(keys)
        return next((self.origins[keys[:length]] for length in (2, 1) if keys[:length] in self.origins), self.path)

    def where(self, keys: Sequence[str | int]) -> str:
        """Return `file:line: key.path` of the deepest known ancestor of `keys`."""
        keys = tuple(keys)
        dotted = ".".join(" ".join(str(key).splitlines()) for key in keys)  # a message is one line, whatever a key holds
        for length in range(len(keys), 0, -1):
            if keys[:length] in self.lines:
                return f"{self.origin(keys[:length])}:{self.lines[keys[:length]]}: {dotted}"
        return f"{self.origin(keys)}: {dotted}" if dotted else str(self.path)


def where_of(files: Mapping[str, YamlFile], file: str, keys: Sequence[str | int]) -> str:
    """Return file, line and key for a message; the key alone where the file was not read from disk."""
    return files[file].where(keys) if file in files else f"{file}: {'.'.join(map(str, keys))}"


Keys = tuple[str | int, ...]
Line = tuple[Keys, int]


@cache
def plain_value(text: str) -> Any:
    """Return what an unquoted YAML 1.2 scalar stands for: None, a bool, a number, a date or the text itself.

    Raises:
        ValueError: a date that does not exist.
    """
    known = _yaml_1_2()
    tag = known.resolver.resolve(ScalarNode, text, (True, False))
    return text if str(tag).endswith(TEXTS) else known.constructor.construct_object(ScalarNode(tag, text))


@cache
def _yaml_1_2() -> YAML:
    known = YAML(typ="safe", pure=True)
    known.version = (1, 2)
    return known


@dataclass
class _Open:
    """A mapping or a list whose end has not come."""

    at: Keys
    value: dict[str, Any] | list[Any]
    anchor: str | None
    first_node: int
    first_line: int
    key: str | None = None
    merged: list[dict[str, Any]] = field(default_factory=list)


class _Builder:
    """Makes plain values of parse events; counts values, so that an alias bomb ends here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int, Keys, list[Line]]] = {}
        self._lines: list[Line] = []
        self._nodes = self._documents = 0
        self.content: Any = None

    @property
    def lines(self) -> dict[Keys, int]:
        return dict(self._lines)

    def _error(self, what: str, event: Any, **more: Any) -> InputError:
        return InputError(what, where=f"{self._path}:{event.start_mark.line + 1}", **more)

    def _where(self) -> Keys:
        """Return the keys of the value that comes next."""
        if not self._open:
            return ()
        last = self._open[-1]
        return (*last.at, len(last.value) if isinstance(last.value, list) else str(last.key))

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            why = f"more than {MAX_NODES:,}"
            raise self._error("YAML expands to too many values", event, why=why, do="Remove the nested aliases")

    def build(self, events: Iterable[Any]) -> None:
        """Take all events of a file."""
        for event in events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    raise self._error("not valid YAML", event, why="a second document begins here", do="Keep one document per file")
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                self._begin(event, {} if kind == "MappingStartEvent" else [])
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self._end(event)
            elif kind == "AliasEvent":
                self._alias(event)
            elif kind == "ScalarEvent":
                self._scalar(event)

    def _begin(self, event: Any, value: dict[str, Any] | list[Any]) -> None:
        if event.tag is not None:
            raise self._error("tags are not allowed", event, do="Write plain values")
        if self._takes_key():
            raise self._error("a key is not text", event, do="Put it in quotes")
        if len(self._open) == MAX_DEPTH:
            raise self._error("YAML is nested too deep", event, why=f"more than {MAX_DEPTH} levels")
        self._count(1, event)
        self._mark(event)
        self._open.append(_Open(self._where(), value, event.anchor, self._nodes - 1, len(self._lines)))

    def _takes_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _mark(self, event: Any) -> None:
        """Note where an item of a list begins."""
        if self._open and isinstance(self._open[-1].value, list):
            self._lines.append((self._where(), event.start_mark.line + 1))

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        if done.merged:
            assert isinstance(done.value, dict)
            done.value = {k: v for part in [*reversed(done.merged), done.value] for k, v in part.items()}
        if done.anchor is not None:
            self._anchors[done.anchor] = done.value, self._nodes - done.first_node, done.at, self._lines[done.first_line :]
        self._put(done.value, event)

    def _alias(self, event: Any) -> None:
        if self._takes_key():
            raise self._error("a key is not text", event, do="Write the key as plain text")
        if event.anchor not in self._anchors:
            raise self._error(f"unknown anchor {event.anchor!r}", event, do="Put the anchor before its aliases, not around them")
        value, nodes, at, lines = self._anchors[event.anchor]
        self._count(nodes, event)
        self._mark(event)
        here = self._where()
        self._lines += [((*here, *keys[len(at) :]), line) for keys, line in lines]
        self._put(copy.deepcopy(value), event)

    def _scalar(self, event: Any) -> None:
        if event.tag is not None:
            raise self._error("tags are not allowed", event, do="Write plain values")
        self._count(1, event)
        try:
            value = plain_value(event.value) if event.implicit[0] else event.value
        except ValueError as error:
            raise self._error("not valid YAML", event, why=str(error)) from error
        if self._takes_key():
            self._key(event, value)
            return
        if isinstance(value, float) and not math.isfinite(value):
            dotted = ".".join(map(str, self._where()))
            raise InputError("not a finite number", where=f"{self._path}:{event.start_mark.line + 1}: {dotted}", why=f"found {value}")
        if isinstance(value, int) and abs(value) > LARGEST:
            raise self._error("the number is too large", event, why=f"more than {LARGEST:,}")
        self._mark(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, 1, self._where(), []
        self._put(value, event)

    def _key(self, event: Any, value: Any) -> None:
        last = self._open[-1]
        if not isinstance(value, str):
            raise self._error(f"key {value!r} is not text", event, do="Put it in quotes")
        if value in last.value:
            raise self._error("a key occurs twice", event, why=f"found {value!r} again")
        last.key = value
        if value != MERGE:
            self._lines.append(((*last.at, value), event.start_mark.line + 1))

    def _put(self, value: Any, event: Any) -> None:
        if not self._open:
            self.content = value
            return
        last = self._open[-1]
        if isinstance(last.value, list):
            last.value.append(value)
            return
        key, last.key = str(last.key), None
        if key == MERGE:
            parts = value if isinstance(value, list) else [value]
            if last.merged or not all(isinstance(part, dict) for part in parts):
                raise self._error("<< needs one mapping, or one list of mappings", event)
            last.merged = parts
        else:
            last.value[key] = value


def load_yaml(path: Path, shown: Path | None = None) -> YamlFile:
    """Read one YAML file.

    Args:
        path: the file.
        shown: the name that messages use, where it differs (relative to the project).

    Raises:
        InputError: missing, unreadable, too large, not YAML 1.2, a duplicate key, a tag, a non-text key; names file and line.
    """
    shown = shown or path
    text = read_text(path, shown)
    if len(text) > MAX_BYTES:
        raise InputError("file is too large for a configuration", where=str(shown), why=number_of(len(text), "character"))
    return parse_yaml(text, shown)


def parse_yaml(text: str, shown: Path) -> YamlFile:
    """Read YAML that is already in memory; `shown` is what messages call it. Raises as `load_yaml` does."""
    builder = _Builder(shown)
    try:
        builder.build(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise InputError("not valid YAML", where=f"{shown}:{line}", why=str(error.problem), do=_yaml_advice(error, text)) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError("not valid YAML", where=str(shown), why=str(error).splitlines()[0]) from error
    return YamlFile(shown, {} if builder.content is None else builder.content, builder.lines)


def _yaml_advice(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return what the parser's own words leave out: it names a character without showing it."""
    lines = text.split("\n")
    line = lines[error.problem_mark.line] if error.problem_mark and error.problem_mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "Indent with spaces, not with tabs"
    if "alphabetic or numeric" in str(error.problem):
        return "Put a text that begins with * or & in quotes"
    return ""
