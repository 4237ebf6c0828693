"""Sizes of a paper's training data, one of which `sizes` of config.yaml chooses (EMMA-X's S, M and full: docs/papers/emma_x.md).

A paper's file is written for the first of its sizes. Of another one, every training set that it changes, and every set and system that
depends on one of these, bears the size behind its id: `ex_pairs-S`, `EX-p1-S`. So an id always stands for one recipe, and sizes lie side
by side in the results. `{size}` in the texts of tables and figures is the size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from crosslign.errors import InputError
from crosslign.files.text import mapped
from crosslign.registry import nearest

MARK = "{size}"
PROSE = frozenset({"label", "group", "title", "caption", "text", "place", "published"})
"""Keys whose text is not an id of ours."""

Entries = Mapping[str, Mapping[str, Any]]


def sized(
    content: Mapping[str, Any], corpora: Entries, size: str | None, where: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Return a paper's sections at a size, under their old ids, with what is new beside them.

    Args:
        content: the paper's file.
        corpora: the catalog's corpora.
        size: the chosen size; the first of the file where it is None.
        where: the setting, for messages.

    Returns:
        The sections; the corpora of that size, by their new ids; the new id of each corpus and training set that the size changes.

    Raises:
        InputError: the paper has no such size, or it changes a training set or corpus that is not there.
    """
    sizes = content.get("sizes", {})
    if size is not None and size not in sizes:
        raise InputError(f"unknown size {size!r}", where=where, why=nearest(size, list(sizes)) if sizes else "this paper has only one size")
    if not sizes:
        return dict(content), {}, {}
    size = size or next(iter(sizes))
    changes, suffix = sizes[size], "" if size == next(iter(sizes)) else f"-{size}"
    examples = dict(content.get("examples", {}))
    for name, change in changes.get("examples", {}).items():
        if name not in examples:
            raise InputError(f"size {size!r} names an unknown training set {name!r}", where=where, why=nearest(name, list(examples)))
        examples[name] = _changed(examples[name], change)
    cut: dict[str, Any] = {}
    for pattern, change in changes.get("corpora", {}).items():
        found = [name for name in corpora if fnmatchcase(name, pattern)]
        if not found:
            raise InputError(f"size {size!r} names unknown corpora {pattern!r}", where=where)
        cut |= {name: _changed(corpora[name], change) for name in found}
    ids = {name: f"{name}{suffix}" for name in (*cut, *changes.get("examples", {}))}
    texts = {
        section: mapped(content[section], lambda value: value.replace(MARK, size) if isinstance(value, str) else value)
        for section in ("tables", "figures")
        if section in content
    }
    return {**content, "examples": examples, **texts}, {ids[name]: entry for name, entry in cut.items()}, ids


def _changed(entry: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with keys replaced, or left out where they are null."""
    return {key: value for key, value in {**entry, **change}.items() if value is not None}


def with_dependants(sections: Mapping[str, Entries], ids: Mapping[str, str]) -> dict[str, str]:
    """Return the new id of everything that has one: of what changes, and of the training sets and systems that depend on it.

    Args:
        sections: sections of all papers.
        ids: new ids of the corpora and training sets that change.
    """
    found = {old: new for old, new in ids.items() if old != new}
    while True:
        uses = [(name, [*entry.get("from", ()), *entry.get("of", ())]) for name, entry in sections["examples"].items()]
        uses += [(name, _used(sections[kind], recipe)) for kind in ("systems", "finetunes") for name, recipe in sections[kind].items()]
        more = {name: name + suffix for name, used in uses if name not in found and (suffix := _suffix(found, used))}
        if not more:
            return found
        found |= more


def _used(recipes: Entries, recipe: Mapping[str, Any]) -> list[str]:
    """Return the training sets that a recipe trains on, and the system that it starts from."""
    whole, above = dict(recipe), recipe
    for _ in recipes:  # a chain longer than that has a cycle, which is refused elsewhere
        above = recipes.get(above.get("like", ""), {})
        whole = {**above, **whole}
    base = whole.get("base", {}).get("system")
    return [*(term["examples"] for term in whole.get("terms", ())), *([base] if base else [])]


def _suffix(found: Mapping[str, str], names: Sequence[str]) -> str:
    return next((found[name][len(name) :] for name in names if name in found), "")


def renamed(value: Any, ids: Mapping[str, str]) -> Any:
    """Return entries with old ids replaced wherever one stands, as a key, a value or a link of a chain (`X+finetune`)."""
    if isinstance(value, str):
        return "+".join(ids.get(part, part) for part in value.split("+"))
    if isinstance(value, Mapping):
        return {renamed(key, ids): item if key in PROSE else renamed(item, ids) for key, item in value.items()}
    return [renamed(item, ids) for item in value] if isinstance(value, list) else value
