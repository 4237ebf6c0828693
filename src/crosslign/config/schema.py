"""JSON schema is the one source of checks; an error is one line that names file, key, found and allowed."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry, Resource

from crosslign.config.yaml_files import YamlFile, load_yaml
from crosslign.errors import InputError
from crosslign.files.text import is_number
from crosslign.registry import nearest


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:
    """Match as JSON schema means it: there `$` is the end, while Python's lets one more line end pass."""
    if validator.is_type(instance, "string") and (not re.search(pattern, instance) or (pattern.endswith("$") and instance.endswith("\n"))):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _is_integer(_: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: Any, value: Any) -> bool:
    return _is_integer(_, value) or (isinstance(value, float) and math.isfinite(value))


_NUMBERS = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_integer, "number": _is_number})
"""`12.0` is not an integer here, as it is none of Python's, and NaN, which no bound refuses, is no number."""
_Validator = extend(Draft202012Validator, {"pattern": _pattern}, type_checker=_NUMBERS)
_FORMATS = FormatChecker(formats=())


SECRET = re.compile(
    r"token|secret|passw|signature|credential|auth(?!ors?$)|(?:api|access)[_-]?key|^(?:sig|sas|pwd)$", re.IGNORECASE | re.ASCII
)
"""Names of URL parameters that may hold a secret."""


@_FORMATS.checks("query", raises=ValueError)  # type: ignore[untyped-decorator]
def _open_to_all(text: Any) -> bool:
    """Take a path, or an address, whose query holds no secret.

    Raises:
        ValueError: names the parameter, and never its value.
    """
    query = text.partition("?")[2] if isinstance(text, str) else ""
    if found := next((name for name, _ in parse_qsl(query, keep_blank_values=True) if SECRET.search(name)), ""):
        raise ValueError(f"{found[:40]!r} in it looks like a secret, and would appear in lineage and logs; put the file into a mirror")
    return True


@_FORMATS.checks("uri", raises=ValueError)  # type: ignore[untyped-decorator]
def _fetchable(text: Any) -> bool:
    """Take an address of a web server without a password.

    Raises:
        ValueError: says what is wrong, and never the address: it may hold what nobody may see.
    """
    if not isinstance(text, str):
        return True
    parts = urlsplit(text)
    if "@" in parts.netloc:
        raise ValueError("it contains a user name or password, which would appear in lineage and logs; put the files into a mirror")
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", text):
        raise ValueError("it must begin with https:// or http:// and a host, and have no spaces")
    return bool(_open_to_all(text))


SCHEMAS = Path(__file__).parent / "schemas"
"""Folder of the schemas of all files of the configuration."""


def editor_line(name: str, folder: Path) -> str:
    """Return the first line of a file that is written into a folder: by it, editors find the schema and complete keys."""
    return f"# yaml-language-server: $schema={os.path.relpath(SCHEMAS / f'{name}.yaml', folder.resolve())}\n"


@functools.cache
def schemas_by_name() -> dict[str, Any]:
    """Return the content of all schemas, by name; read once."""
    return {path.stem: load_yaml(path).content for path in sorted(SCHEMAS.glob("*.yaml"))}


@functools.cache
def _registry() -> Registry[Any]:
    resources = [(f"{stem}.yaml", Resource.from_contents(schema)) for stem, schema in schemas_by_name().items()]
    return Registry().with_resources(resources)


def validator(schema: Mapping[str, Any]) -> Any:
    """Return what checks values against a schema, which may point at those of files."""
    return _Validator(schema, registry=_registry(), format_checker=_FORMATS)


@functools.cache
def _validator(name: str, part: str) -> Any:
    return validator({"$ref": f"{name}.yaml#/$defs/{part}"} if part else schemas_by_name()[name])


def _deepest(error: ValidationError) -> ValidationError:
    """Follow `oneOf`/`anyOf` into the branch that came nearest to fitting, one for values of this type before others."""
    while error.context and not _choice(error):
        found = best_match([inner for inner in error.context if not _is_of_another_type(inner, error)])
        if found is None:
            break
        error = found
    return error


def _is_of_another_type(branch: ValidationError, error: ValidationError) -> bool:
    """Tell whether a branch of `oneOf`/`anyOf` is for values of another type, or for one other value."""
    return branch.validator in ("type", "const") and branch.absolute_path == error.absolute_path


def _choice(error: ValidationError) -> list[list[str]]:
    """Return the keys, or keys that go together, of which one must be there and no other, where that is what the schema says."""
    branches = error.validator_value if error.validator == "oneOf" else []
    return [branch["required"] for branch in branches] if all("required" in branch for branch in branches) else []


def _about_keys(error: ValidationError) -> tuple[str, list[str], str] | None:
    """Return what is wrong about the keys of a mapping, the one that it is, if any, and why; None where it is something else."""
    if choice := _choice(error):
        names = {" with ".join(keys): set(keys) <= set(error.instance) for keys in choice}
        found = ", ".join(name for name, there in names.items() if there) or "none"
        return f"exactly one of {', '.join(names)} is needed", [], f"found {found}"
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        known = set(allowed)
        unknown = next(key for key in error.instance if key not in known)
        return f"unknown key {unknown!r}", [unknown], nearest(str(unknown), allowed)
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"key {missing!r} is missing", [], f"found {sorted(error.instance)}"
    if error.validator == "not":
        branches = error.validator_value.get("anyOf", [error.validator_value])
        first, *others = next(branch["required"] for branch in branches if set(branch["required"]) <= set(error.instance))
        return f"keys {first!r} and {others[0]!r} exclude each other" if others else f"key {first!r} does not belong here", [first], ""
    return None


def _written(value: Any) -> str:
    """Return a value as its file has it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool | date):
        return str(value).lower()
    return repr(value)


def _advice(wanted: Sequence[str], found: Any) -> str:
    """Return how a value of another type is written as one that is wanted."""
    forms = (
        ("array", isinstance(found, Mapping), "Begin each entry of a list with `- `"),
        ("array", found is not None, f"Write a list in brackets: [{str(found).strip('[]')}]"),
        ("string", isinstance(found, bool | int | float | date), "Put it in quotes"),
        ("object", isinstance(found, str), "Write keys with their values: {key: value}"),
        ("boolean", isinstance(found, str), "Write true or false"),
        ("number", isinstance(found, str) and is_number(found), "Remove the quotes"),
        ("integer", isinstance(found, str) and is_number(found), "Remove the quotes"),
        ("integer", isinstance(found, float) and found.is_integer(), f"Write {found:.0f}" if isinstance(found, float) else ""),
    )
    return next((form for kind, fits, form in forms if kind in wanted and fits), "")


def _about_type(error: ValidationError) -> tuple[str, str, str] | None:
    """Return what was found, what would do, and how that is written, where the value is of another type; None where it is not."""
    branches = error.context if error.validator in ("oneOf", "anyOf") else [error]
    if not branches or any(branch.validator not in ("type", "const") for branch in branches):
        return None
    wanted: list[str] = []
    for branch in branches:
        value = branch.validator_value
        wanted += [repr(value)] if branch.validator == "const" else [value] if isinstance(value, str) else value
    must_be = f"must be {wanted[0]} here" if error.validator == "const" else f"must be of type {' or '.join(wanted)}"
    return f"found {_written(error.instance)}", must_be, _advice(wanted, error.instance)


def _explain(error: ValidationError, file: YamlFile, at: Sequence[str | int]) -> InputError:
    keys: list[str | int] = [*at, *error.absolute_path]
    if said := _about_keys(error):
        what, place, why = said
        return InputError(what, where=file.where([*keys, *place]), why=why)
    if of_another_type := _about_type(error):
        what, why, do = of_another_type
        return InputError(what, where=file.where(keys), why=why, do=do)
    what, why = error.message, ""
    if error.validator == "enum":
        what, why = f"{_written(error.instance)} is not allowed", nearest(str(error.instance), [str(v) for v in error.validator_value])
    elif error.validator == "uniqueItems":
        what = f"{next(item for item in error.instance if error.instance.count(item) > 1)!r} occurs twice"
    elif error.validator == "maxProperties":
        what, why = "only one key is allowed here", f"found {', '.join(error.instance)}"
    elif error.validator == "pattern":
        why = str(error.schema.get("description", "")).rstrip(".")
    elif error.validator == "format":
        what, why = "not an address from which files can be fetched", str(error.cause)
    name = [str(error.instance)] if "propertyNames" in error.absolute_schema_path else []
    return InputError(what, where=file.where([*keys, *name]), why=why)


def check(file: YamlFile, name: str, part: str = "") -> None:
    """Check a file against the schema of a name, or against one of its definitions.

    Raises:
        InputError: the first thing wrong, in file order.
    """
    check_value(file.content, _validator(name, part), file, ())


def check_value(value: Any, valid: Any, file: YamlFile, at: Sequence[str | int]) -> None:
    """Check what stands in a file at the keys `at` by a `validator`; errors as those of `check`."""
    if errors := sorted(valid.iter_errors(value), key=lambda e: [str(k) for k in e.absolute_path]):
        raise _explain(_deepest(errors[0]), file, at)
