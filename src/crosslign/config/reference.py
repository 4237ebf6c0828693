"""The configuration reference, written from the schemas: `python -m crosslign.config.reference > config/README.md`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.config.yaml_files import load_yaml

FILES = ("config", "corpora", "encoders", "tasks", "scale", "paper", "options")
INTRODUCTION = """# Configuration of the snakemake workflow

Made from `workflow/schemas/` by `python -m crosslign.config.reference`; a test fails when the two differ. Every file is checked
against its schema before anything runs; an unknown key ends the run with one line that names file, key and what is allowed.
`snakemake --config scale=quick` overrides a key of config.yaml for one call.
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


def _lines(schema: Mapping[str, Any], schemas: Mapping[str, Any], here: str, depth: int) -> list[str]:
    lines = []
    required = schema.get("required", [])
    for key, raw in schema.get("properties", {}).items():
        entry, place = _resolve(raw, schemas, here)
        facts = [
            _kind(entry),
            _range(entry),
            "required" if key in required else "",
            f"default {entry['default']}" if "default" in entry else "",
        ]
        text = f"{'  ' * depth}- `{key}` ({', '.join(fact for fact in facts if fact)})"
        lines.append(text + (f": {entry['description']}" if "description" in entry else ""))
        inner = entry
        for form in ("additionalProperties", "items"):
            if isinstance(entry.get(form), Mapping):
                inner, place = _resolve(entry[form], schemas, place)
        if depth < 4:
            lines += _lines(inner, schemas, place, depth + 1)
    return lines


def reference(folder: Path) -> str:
    """Return the reference as Markdown.

    Args:
        folder: the schemas.
    """
    schemas = {path.stem: load_yaml(path).content for path in sorted(folder.glob("*.yaml"))}
    parts = [INTRODUCTION]
    for name in FILES:
        parts.append(f"\n## {schemas[name]['title']}\n\n" + "\n".join(_lines(schemas[name], schemas, name, 0)) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(reference(Path("workflow/schemas")))
