"""The configuration reference, written from schemas and signatures: `python -m crosslign.config.reference > config/README.md`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from crosslign.config.schema import schemas_by_name
from crosslign.config.signatures import IMPLEMENTATIONS, docstring

FILES = ("config", "corpora", "encoders", "tasks", "scale", "paper", "pair", "options")
OPTIONS: Mapping[str, str] = {
    "readers": "Readers of corpora (`reader` and `options` of a corpus).",
    "evaluations": "Readers of evaluation corpora (`reader` and `options` of a corpus of kind evaluation).",
    "filters": "Filters of corpora.",
    "views": "Builders of views.",
    "translators": "Translators of views.",
    "example_builders": "Builders of training sets.",
    "parts": "Kinds of a recipe's parts.",
    "objectives": "Objectives of a recipe's terms.",
    "scorers": "Scorers of evaluations.",
}

INTRODUCTION = """# Configuration of the snakemake workflow

`python -m crosslign.config.reference` writes this page from `src/crosslign/config/schemas/`, and the options of implementations from
signatures and docstrings of the code. A test fails if they differ. Every file is checked against its schema before anything runs. An
unknown key ends the run with one line that names file, key and the allowed keys.
`snakemake --config scale=quick` overrides a key of config.yaml for one call.

Editors with yaml-language-server (VS Code, Neovim, Emacs, JetBrains) complete keys and mark mistakes while you type, if the first
line of a file names its schema by a relative path. In `config/corpora.yaml` this line is
`# yaml-language-server: $schema=schemas/corpora.yaml`, in `config/papers/mine.yaml` it is
`# yaml-language-server: $schema=../schemas/paper.yaml`. Files of this repository, and files that commands write, have it.

config.yaml and paper.yaml are in this folder. All other files are in the catalog, `src/crosslign/catalog/`. A file of the same name in
this folder is read after the catalog's: its entries are added, or replace the whole entries of the same name, and the run prints which.
Printed figures (`resources/published/<table>.csv`) and files that entries name (`local:`, `files_from:`) are searched in the
project first, then in the catalog.
"""


def dereferenced(schema: Mapping[str, Any], schemas: Mapping[str, Any], here: str) -> tuple[Mapping[str, Any], str]:
    """Follow `$ref`; keep the description that stands beside it."""
    reference = schema.get("$ref")
    if reference is None:
        return schema, here
    file, _, pointer = reference.partition("#")
    name = file.removesuffix(".yaml") or here
    found = schemas[name]
    for key in pointer.strip("/").split("/"):
        found = found[key]
    return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}, name


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if {"oneOf", "anyOf"} & set(schema) and "type" not in schema:
        return "one of several forms"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _range(schema: Mapping[str, Any]) -> str:
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return " ".join(f"{sign} {schema[key]}" for key, sign in bounds.items() if key in schema)


def _written(value: Any) -> str:
    """Return a value as YAML has it."""
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)


def _lines(schema: Mapping[str, Any], schemas: Mapping[str, Any], here: str, depth: int, seen: dict[str, str]) -> list[str]:
    """Return a line for each key and those below it; keys of entries that were listed before (`seen`) are not listed again."""
    lines = []
    required = schema.get("required", [])
    for key, raw in schema.get("properties", {}).items():
        entry, place = dereferenced(raw, schemas, here)
        facts = [
            _kind(entry),
            _range(entry),
            "required" if key in required else "",
            f"default {_written(entry['default'])}" if "default" in entry else "",
        ]
        text = f"{'  ' * depth}- `{key}` ({', '.join(fact for fact in facts if fact)})"
        text += f": {entry['description']}" if "description" in entry else ""
        inner, before = entry, ""
        for form in ("additionalProperties", "items"):
            if isinstance(entry.get(form), Mapping):
                before = seen.get(str(entry[form].get("$ref")), "")
                seen.setdefault(str(entry[form].get("$ref")), key)
                inner, place = dereferenced(entry[form], schemas, place)
        known = before and "properties" in inner
        lines.append(f"{text} Its keys: those of `{before}` above." if known else text)
        if depth < 4 and not known:
            lines += _lines(inner, schemas, place, depth + 1, seen)
    return lines


def _explained(point: str, name: str) -> dict[str, Any]:
    """Return the schema of an implementation's options with the words of its docstring for it and for each option."""
    what, _, rest = docstring(point, name).partition("\n\n")
    schema = IMPLEMENTATIONS[point][name].schema
    arguments = rest.partition("Args:\n")[2].split("\n\n")[0]
    words = {}
    for names, text in re.findall(r"^ {4}(\w+(?:, \w+)*): ((?:.|\n(?= {8}))*)", arguments, flags=re.MULTILINE):
        words.update(dict.fromkeys(names.split(", "), " ".join(text.split())))
    options = {key: {**one, "description": words[key]} if key in words else one for key, one in schema["properties"].items()}
    return {**schema, "description": " ".join(what.split()), "properties": options}


def summaries(section: str) -> list[tuple[str, str]]:
    """Return name and first line of the docstring of each implementation of an extension point, sorted by name."""
    return [(name, docstring(section, name).partition("\n")[0]) for name in IMPLEMENTATIONS[section]]


def reference() -> str:
    """Return the reference as Markdown."""
    points = {
        point: {"type": "object", "description": text, "properties": {name: _explained(point, name) for name in IMPLEMENTATIONS[point]}}
        for point, text in OPTIONS.items()
    }
    schemas = {**schemas_by_name(), "options": {"title": "Options of implementations", "properties": points}}
    parts, seen = [INTRODUCTION], {"None": ""}
    for name in FILES:
        parts.append(f"\n## {schemas[name]['title']}\n\n" + "\n".join(_lines(schemas[name], schemas, name, 0, seen)) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(reference())
