"""JSON schema is the one source of checks; an error is one line that names file, key, found and allowed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry, Resource

from crosslign.config.yaml_files import YamlFile, load_yaml
from crosslign.errors import InputError
from crosslign.registry import nearest


@functools.cache
def schemas_of(folder: Path) -> dict[str, Any]:
    """Return the content of all schemas of a folder, by name; read once."""
    return {path.stem: load_yaml(path).content for path in sorted(folder.glob("*.yaml"))}


@functools.cache
def _validator(folder: Path, name: str) -> Draft202012Validator:
    schemas = schemas_of(folder)
    registry: Registry[Any] = Registry().with_resources(
        [(f"{stem}.yaml", Resource.from_contents(schema)) for stem, schema in schemas.items()]
    )
    return Draft202012Validator(schemas[name], registry=registry)


def _deepest(error: ValidationError) -> ValidationError:
    """Follow `oneOf`/`anyOf` into the branch that came nearest to fitting."""
    while error.context:
        found = best_match(error.context)
        if found is None:
            break
        error = found
    return error


def _explain(error: ValidationError, file: YamlFile) -> InputError:
    keys: list[str | int] = list(error.absolute_path)
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        known = set(allowed)
        unknown = next(key for key in error.instance if key not in known)
        return InputError(f"unknown key {unknown!r}", where=file.where([*keys, unknown]), why=nearest(str(unknown), allowed))
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return InputError(f"key {missing!r} is missing", where=file.where(keys), why=f"found {sorted(error.instance)}")
    if error.validator == "enum":
        return InputError(
            f"{error.instance!r} is not allowed",
            where=file.where(keys),
            why=nearest(str(error.instance), [str(v) for v in error.validator_value]),
        )
    if error.validator == "type":
        return InputError(f"found {error.instance!r}", where=file.where(keys), why=f"must be of type {error.validator_value}")
    if error.validator == "propertyNames":
        return InputError(
            f"{error.instance!r} is no valid name" if isinstance(error.instance, str) else error.message, where=file.where(keys)
        )
    return InputError(error.message, where=file.where(keys))


def check(file: YamlFile, schemas: Path, name: str) -> None:
    """Check a file against `<schemas>/<name>.yaml`.

    Raises:
        InputError: the first thing wrong, in file order.
    """
    errors = sorted(_validator(schemas, name).iter_errors(file.content), key=lambda e: [str(k) for k in e.absolute_path])
    if errors:
        raise _explain(_deepest(errors[0]), file)
