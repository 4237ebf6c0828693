"""Entries of the catalog that stand for many: `cc100_{lang}` with `each: {lang: [de, fr]}` is `cc100_de` and `cc100_fr`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from crosslign.config.yaml_files import YamlFile
from crosslign.errors import InputError

NAME = re.compile(r"\{([a-z_]+)\}")
SECTIONS = ("sources", "corpora")


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with `{name}` replaced by its text wherever text stands, keys included; names that are not given stay."""
    if isinstance(value, str):
        return NAME.sub(lambda match: names.get(match[1], match[0]), value)
    if isinstance(value, Mapping):
        return {_filled(key, names): _filled(inner, names) for key, inner in value.items()}
    return [_filled(inner, names) for inner in value] if isinstance(value, list) else value


def _columns(each: Any, where: str, name: str) -> list[dict[str, str]]:
    """Return the names of each copy.

    Raises:
        InputError: not lists of texts of one length, or none of the names stands in the id.
    """
    lists = each if isinstance(each, Mapping) else {}
    fit = bool(lists) and all(isinstance(values, list) and values and all(isinstance(v, str) for v in values) for values in lists.values())
    if not fit or len({len(values) for values in lists.values()}) != 1:
        raise InputError("`each` must map names to lists of texts of equal length", where=where, do="Write it as {lang: [de, fr]}")
    if not set(NAME.findall(name)) <= set(lists) or not NAME.search(name):
        raise InputError(f"the id {name!r} must contain one of the names in `each`", where=where, why=f"they are {sorted(lists)}")
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def expand(file: YamlFile) -> YamlFile:
    """Return the catalog with each entry that has `each` replaced by its copies, which stand on the lines of the entry.

    Raises:
        InputError: `each` is malformed, or two entries have one id.
    """
    if not isinstance(file.content, Mapping) or not all(isinstance(file.content.get(section, {}), Mapping) for section in SECTIONS):
        return file
    content, lines = dict(file.content), dict(file.lines)
    below: dict[tuple[str | int, ...], dict[tuple[str | int, ...], int]] = defaultdict(dict)
    for at, line in file.lines.items():
        below[at[:2]][at[2:]] = line
    for section in SECTIONS:
        copies: dict[str, Any] = {}
        for name, entry in content.get(section, {}).items():
            if not isinstance(entry, Mapping) or "each" not in entry:
                made = {name: entry}
            else:
                rest = {key: value for key, value in entry.items() if key != "each"}
                names = _columns(entry["each"], file.where((section, name, "each")), name)
                made = {_filled(name, known): _filled(rest, known) for known in names}
                lines.update({(section, copy, *at): line for copy in made for at, line in below[section, name].items()})
            if twice := sorted(set(made) & set(copies)):
                raise InputError(f"{twice[0]!r} occurs twice", where=file.where((section, name)))
            copies.update(made)
        if section in content:
            content[section] = copies
    return YamlFile(file.path, content, lines)
