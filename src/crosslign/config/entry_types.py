"""The types of entries, written from the schemas: `python -m crosslign.config.entry_types papers > src/crosslign/entries/papers.py`.

A schema whose title is a name becomes a `TypedDict` of that name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from crosslign.config.reference import dereferenced
from crosslign.config.schema import schemas_by_name

TYPES: Mapping[str, str] = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
MODULES: Mapping[str, tuple[str, ...]] = {"catalog": ("common", "corpora", "encoders", "tasks", "scale"), "papers": ("paper", "config")}
"""Modules of `crosslign.entries`, and the schemas that each is written from."""
WHOLE: Mapping[str, str] = {"config": "Settings", "scale": "Scale"}
"""Types of whole files."""
LONGEST = 8
"""Values that a type lists; of a choice of more it says no more than their type."""
HEAD = '''"""Entries of the configuration as files have them, written by `python -m crosslign.config.entry_types {name}`; do not edit.

Beside these keys, an entry holds the options of the implementation that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict
'''


class _Writer:
    """Writes each named schema once, after those that it names."""

    def __init__(self) -> None:
        self.schemas = schemas_by_name()
        self.written: dict[str, str] = {}

    def type_of(self, raw: Mapping[str, Any], here: str) -> str:
        """Return the type of the values that a schema of the file `here` describes."""
        schema, here = dereferenced(raw, self.schemas, here)
        if str(schema.get("title", "")).isidentifier():
            return self.entry(schema["title"], schema, here)
        if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
            return f"Literal[{', '.join(map(repr, values))}]" if len(values) <= LONGEST else type(values[0]).__name__
        kinds = schema.get("type", [])
        branches = [self._of_kind(kind, schema, here) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
        branches = branches or [self.type_of(branch, here) for branch in schema.get("oneOf", [])]
        return " | ".join(dict.fromkeys(branches)) or "Any"

    def _of_kind(self, kind: str, schema: Mapping[str, Any], here: str) -> str:
        if kind == "array":
            return f"list[{self.type_of(schema['items'], here)}]"
        if kind == "object":
            values = schema.get("additionalProperties")
            return f"Mapping[str, {self.type_of(values, here) if isinstance(values, Mapping) else 'Any'}]"
        return TYPES[kind]

    def entry(self, name: str, schema: Mapping[str, Any], here: str) -> str:
        """Write the class of a schema unless that was done; return its name."""
        if name not in self.written:
            types = {key: self.type_of(value, here) for key, value in schema["properties"].items()}
            types |= {key: f"Required[{types[key]}]" for key in schema.get("required", []) if key in types}
            if all(key.isidentifier() and key != "from" for key in types):
                fields = "".join(f"    {key}: {kind}\n" for key, kind in types.items())
                first = re.split(r"[:.] ", schema["description"])[0].rstrip(".")
                self.written[name] = f'class {name}(TypedDict, total=False):\n    """{first}."""\n\n{fields}'
            else:
                fields = "".join(f"        {key!r}: {kind!r},\n" for key, kind in types.items())
                self.written[name] = f'{name} = TypedDict(\n    "{name}",\n    {{\n{fields}    }},\n    total=False,\n)\n'
        return name


def entry_types(name: str) -> str:
    """Return a module of `crosslign.entries` as Python."""
    writer = _Writer()
    for file in MODULES[name]:
        schema = writer.schemas[file]
        for defined in [*schema.get("$defs", {}).values(), *schema.get("properties", {}).values()]:
            writer.type_of(defined, file)
        if file in WHOLE:
            writer.entry(WHOLE[file], schema, file)
    return "\n\n".join([HEAD.format(name=name), *writer.written.values()])


if __name__ == "__main__":
    sys.stdout.write(entry_types(sys.argv[1]))
