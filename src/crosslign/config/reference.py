"""The configuration reference, written from the schemas: `python -m crosslign.config.reference > config/README.md`.

What an option means stands once, in the docstring of the code that takes it; that code is read here, never imported.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.config.schema import SCHEMAS
from crosslign.config.yaml_files import load_yaml
from crosslign.registry import is_registering

FILES = ("config", "corpora", "encoders", "tasks", "scale", "paper", "pair", "options")
SOURCE = Path(__file__).resolve().parents[1]
PACKAGES = {
    "readers": "corpora.readers",
    "evaluations": "corpora.evaluations",
    "filters": "corpora.filters",
    "views": "views.builders",
    "translators": "views.translators",
    "example_builders": "examples.builders",
    "parts": "objectives.parts",
    "objectives": "objectives.terms",
    "scorers": "tasks.scorers",
}
"""Package of each extension point of options.yaml; an implementation is the module of its name."""

INTRODUCTION = """# Configuration of the snakemake workflow

Made from `src/crosslign/config/schemas/`, and from the docstrings of the code that takes an option, by
`python -m crosslign.config.reference`; a test
fails when they differ. Every file is checked against its schema before anything runs; an unknown key ends the run with one line that
names file, key and what is allowed. `snakemake --config scale=quick` overrides a key of config.yaml for one call.

config.yaml and paper.yaml stand in this folder. All other files stand in the catalog, `src/crosslign/catalog/`; a file of the same name in
this folder is read over it: an entry is added, or takes the place of the whole one that has its name in the catalog, and the run says so.
Printed figures (`resources/published/<table>.csv`), and what entries name (`local:`, `files_from:`), are looked for in the
project first, then in the catalog.
"""


def _resolve(schema: Mapping[str, Any], schemas: Mapping[str, Any], here: str) -> tuple[Mapping[str, Any], str]:
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
    if "oneOf" in schema and "type" not in schema:
        return "one of several forms"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _range(schema: Mapping[str, Any]) -> str:
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return " ".join(f"{sign} {schema[key]}" for key, sign in bounds.items() if key in schema)


def _written(value: Any) -> str:
    """Return a value as YAML has it."""
    return value if isinstance(value, str) else json.dumps(value)


def _lines(schema: Mapping[str, Any], schemas: Mapping[str, Any], here: str, depth: int, seen: dict[str, str]) -> list[str]:
    """Return a line for each key and those below it; keys of entries that were listed before (`seen`) are not listed again."""
    lines = []
    required = schema.get("required", [])
    for key, raw in schema.get("properties", {}).items():
        entry, place = _resolve(raw, schemas, here)
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
                inner, place = _resolve(entry[form], schemas, place)
        known = before and "properties" in inner
        lines.append(f"{text} Its keys: those of `{before}` above." if known else text)
        if depth < 4 and not known:
            lines += _lines(inner, schemas, place, depth + 1, seen)
    return lines


def _docstring(package: str, name: str) -> str:
    """Return the docstring of what is registered in a module."""
    tree = ast.parse((SOURCE / package.replace(".", "/") / f"{name}.py").read_text(encoding="utf-8"))
    nodes = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    marked = (node for node in nodes if any(is_registering(mark) for mark in node.decorator_list))
    return ast.get_docstring(next(marked)) or ""


def _explained(implementation: Mapping[str, Any], docstring: str) -> dict[str, Any]:
    """Return an implementation's schema with the words of its docstring for it and for each option that has no others."""
    what, _, rest = docstring.partition("\n\n")
    arguments = rest.partition("Args:\n")[2].split("\n\n")[0]
    words = {}
    for names, text in re.findall(r"^ {4}(\w+(?:, \w+)*): ((?:.|\n(?= {8}))*)", arguments, flags=re.MULTILINE):
        words.update(dict.fromkeys(names.split(", "), " ".join(text.split())))
    options = {
        key: {"description": words[key], **schema} if key in words else schema for key, schema in implementation["properties"].items()
    }
    return {"description": " ".join(what.split()), **implementation, "properties": options}


def summaries(section: str) -> list[tuple[str, str]]:
    """Return name and first line of the docstring of each implementation of a section of options.yaml, sorted by name."""
    names = load_yaml(SCHEMAS / "options.yaml").content["$defs"][section]["properties"]
    return [(name, _docstring(PACKAGES[section], name).partition("\n")[0]) for name in sorted(names)]


def reference(folder: Path) -> str:
    """Return the reference as Markdown.

    Args:
        folder: the schemas.
    """
    schemas = {path.stem: load_yaml(path).content for path in sorted(folder.glob("*.yaml"))}
    for seam, package in PACKAGES.items():
        entry = schemas["options"]["$defs"][seam]
        entry["properties"] = {name: _explained(schema, _docstring(package, name)) for name, schema in entry["properties"].items()}
    parts, seen = [INTRODUCTION], {"None": ""}
    for name in FILES:
        parts.append(f"\n## {schemas[name]['title']}\n\n" + "\n".join(_lines(schemas[name], schemas, name, 0, seen)) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(reference(SCHEMAS))
