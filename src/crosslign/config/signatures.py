"""Options of implementations as JSON schema, read from the annotated signatures of their modules: nothing is imported.

An option is a keyword argument of the class or function that a module registers; its annotation (`crosslign.options`) says what a file
may hold, its default that it may be left out, the docstring what it means. What else is to be known before anything runs stands in the call
of `register`, as `shape="pairs"`, or is the class attribute `shape`.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from crosslign.errors import InputError
from crosslign.registry import names_in, outline_of, registered, registrations, source_of

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
"""Package of each extension point that takes options; an implementation is the module of its name."""
POSITIONAL = ("parts", "objectives")
"""Extension points whose options need not be keyword-only."""
GIVEN = ("threads",)
"""Arguments that a stage gives, and no configuration."""
PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
BOUNDS = {"Ge": "minimum", "Gt": "exclusiveMinimum", "Le": "maximum", "Lt": "exclusiveMaximum"}
LENGTHS = {"array": ("minItems", "maxItems"), "string": ("minLength", "maxLength"), "object": ("minProperties", "maxProperties")}
Found = tuple[str, ast.AST]
"""A node, and the module that its names are those of."""


@dataclass(frozen=True, eq=False)
class Declared:
    """What an implementation says of itself.

    Attributes:
        schema: JSON schema of its options together.
        facts: what else its call of `register` says, or its attribute `shape`: the `shape` of the rows that it makes or reads, the kind of
            corpora that it `reads`, what it `gives`, the number of its `languages`, whether a scorer measures `subsets_apart`.
    """

    schema: Mapping[str, Any]
    facts: Mapping[str, Any]

    @property
    def options(self) -> Mapping[str, Mapping[str, Any]]:
        """JSON schema of each option, by name."""
        return dict(self.schema["properties"])


class Implementations(Mapping[str, Declared]):
    """The implementations of one extension point by name, plugins' among them; each is read when asked for."""

    def __init__(self, point: str) -> None:
        self.point, self.package = point, f"crosslign.{PACKAGES[point]}"

    def module(self, name: str) -> str:
        """Return the dotted name of an implementation's module."""
        return f"{self.package}.{name}"

    def __getitem__(self, name: str) -> Declared:
        if name not in self:
            raise KeyError(name)
        return _declared(outline_of(self.module(name)), self.module(name), self.point in POSITIONAL)

    def __contains__(self, name: object) -> bool:
        return name in names_in(self.package)

    def __iter__(self) -> Iterator[str]:
        return iter(names_in(self.package))

    def __len__(self) -> int:
        return len(names_in(self.package))


IMPLEMENTATIONS: Mapping[str, Implementations] = {point: Implementations(point) for point in PACKAGES}


@functools.cache
def arguments_of(module: str, name: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the JSON schema of each argument of a function or method (`Class.method`) that programs call, a path being a text.

    Arguments of which no file could hold the value, or that may be lists, are left out.
    """
    node: Any = outline_of(module)
    for part in name.split("."):
        node = next(one for one in node.body if getattr(one, "name", "") == part)
    found = {}
    for one in (*node.args.args, *node.args.kwonlyargs):
        with suppress(InputError):
            kind = re.sub(r"\bPath\b", "str", ast.unparse(one.annotation or ast.Name("object")))
            found[one.arg] = _of_type(ast.parse(kind, mode="eval").body, module, optional=True)
    return {
        argument: schema for argument, schema in found.items() if all(one.get("type") != "array" for one in schema.get("anyOf", [schema]))
    }


def docstring(point: str, name: str) -> str:
    """Return the docstring of an implementation."""
    return ast.get_docstring(registered(IMPLEMENTATIONS[point].module(name))) or ""


@functools.cache
def _declared(outline: ast.Module, module: str, positional: bool) -> Declared:
    node = registered(module)
    given = [keyword for call in registrations(outline) for keyword in call.keywords]
    facts = {str(keyword.arg): _value(keyword.value, module) for keyword in given if keyword.arg != "version"}
    if isinstance(node, ast.ClassDef) and (shape := _assigned(node).get("shape")):
        facts["shape"] = _value(shape, module)
    rules = facts.pop("rules", {})
    properties: dict[str, Any] = {}
    required = []
    where, function = _signature(module, node)
    for argument, default in _arguments(function, positional) if function else ():
        if argument.annotation is None:
            do = "Add it, as in `margin: float = 0.2` (docs/add-a-method.md)"
            raise InputError(f"the option {argument.arg} has no type", where=f"{source_of(where)}:{argument.lineno}", do=do)
        value = None if default is None else _value(default, where)
        schema = _of_type(argument.annotation, where, optional=default is not None and value is None)
        own = {"default": list(value) if isinstance(value, tuple) else value} if value not in (None, (), "") else {}
        properties[argument.arg] = {**schema, **own}
        required += [argument.arg] if default is None else []
    schema = {"type": "object", "additionalProperties": False, "required": required, "properties": properties, **rules}
    return Declared(schema, facts)


def _arguments(function: ast.FunctionDef, positional: bool) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield the arguments that are options, with their defaults; None where one has none."""
    given = function.args
    if positional:
        first: list[ast.expr | None] = [None] * (len(given.args) - len(given.defaults))
        yield from list(zip(given.args, [*first, *given.defaults], strict=True))[1:]
    yield from ((one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if one.arg not in GIVEN)


def _signature(module: str, node: ast.AST) -> tuple[str, ast.FunctionDef | None]:
    """Return the function that takes the options, with its module: of a class its constructor, or that of the class that it is made of."""
    if isinstance(node, ast.FunctionDef):
        return module, node
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                return module, part
        for base in node.bases:
            if isinstance(base, ast.Name) and (found := _named(module, base.id)):
                inherited = _signature(*found)
                if inherited[1]:
                    return inherited
    return module, None


def _assigned(node: ast.Module | ast.ClassDef) -> dict[str, ast.expr]:
    """Return what is assigned in the body of a module or a class, by name."""
    found = {}
    for part in node.body:
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            found[part.targets[0].id] = part.value
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.value:
            found[part.target.id] = part.value
    return found


@functools.cache
def _top(outline: ast.Module) -> dict[str, ast.AST]:
    """Return what the names of a module stand for: values, classes, functions, imports."""
    found: dict[str, ast.AST] = dict(_assigned(outline))
    body = [*outline.body, *(inner for part in outline.body if isinstance(part, ast.If) for inner in part.body)]
    for part in body:
        if isinstance(part, ast.ClassDef | ast.FunctionDef):
            found[part.name] = part
        elif isinstance(part, ast.ImportFrom):
            found |= {alias.asname or alias.name: part for alias in part.names}
    return found


def _named(module: str, name: str) -> Found | None:
    """Return what a name of a module stands for, looked up through imports; None where that is not a module of ours."""
    if source_of(module) is None or not module.startswith("crosslign."):
        return None
    found = _top(outline_of(module)).get(name)
    if not isinstance(found, ast.ImportFrom):
        return (module, found) if found else None
    original = next(alias.name for alias in found.names if name in (alias.asname, alias.name))
    return _named(found.module or "", original)


def _value(node: ast.expr, module: str) -> Any:
    """Return a value that is written out, or a constant's."""
    if isinstance(node, ast.Name) and (found := _named(module, node.id)) and isinstance(found[1], ast.expr):
        return _value(found[1], found[0])
    try:
        return ast.literal_eval(node)
    except ValueError:
        why = f"found {ast.unparse(node)}, whose value is known only at run time"
        raise InputError("a value must be a literal", where=f"{source_of(module)}:{node.lineno}", why=why) from None


def _of_type(node: ast.expr, module: str, optional: bool = False) -> dict[str, Any]:
    """Return the JSON schema of an annotation; `optional`: None is not a value, but how an option is left out."""
    match node:
        case ast.Constant(value=None) | ast.Name(id="Any"):
            return {} if isinstance(node, ast.Name) else {"type": "null"}
        case ast.Name(id=name) if name in PLAIN:
            return {"type": PLAIN[name]}
        case ast.Name(id=name) if (found := _named(module, name)) and isinstance(found[1], ast.expr):
            return _of_type(found[1], found[0], optional)
        case ast.BinOp(op=ast.BitOr()):
            forms = [_of_type(one, module) for one in _alternatives(node)]
            forms = [form for at, form in enumerate(forms) if form not in forms[:at] and (form != {"type": "null"} or not optional)]
            return forms[0] if len(forms) == 1 else {"anyOf": forms}
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return _of_generic(name, inner.elts if isinstance(inner, ast.Tuple) else [inner], node, module)
    raise _unreadable(node, module)


def _alternatives(node: ast.expr) -> list[ast.expr]:
    return [*_alternatives(node.left), *_alternatives(node.right)] if isinstance(node, ast.BinOp) else [node]


def _of_generic(name: str, inner: Sequence[ast.expr], node: ast.expr, module: str) -> dict[str, Any]:
    match name:
        case "Literal":
            return {"enum": [ast.literal_eval(one) for one in inner]}
        case "Annotated":
            schema = _of_type(inner[0], module)
            for mark in inner[1:]:
                schema = _marked(schema, mark, module)
            return schema
        case "Sequence" | "list":
            return {"type": "array", "items": _of_type(inner[0], module)}
        case "tuple":
            return {"type": "array", "items": _of_type(inner[0], module), "minItems": len(inner), "maxItems": len(inner)}
        case "Mapping" | "dict":
            values = _of_type(inner[1], module)
            return {"type": "object", **({"additionalProperties": values} if values else {})}
    raise _unreadable(node, module)


def _marked(schema: dict[str, Any], mark: ast.expr, module: str) -> dict[str, Any]:
    """Return a type's schema with what an `Annotated` says beside it."""
    if not (isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name)):
        raise _unreadable(mark, module)
    values = [_value(one, module) for one in mark.args]
    if (name := mark.func.id) in BOUNDS:
        return {**schema, BOUNDS[name]: values[0]}
    if name in ("MinLen", "Len"):
        return {**schema, **dict(zip(LENGTHS[schema["type"]], values, strict=False))}
    given = {str(keyword.arg): _value(keyword.value, module) for keyword in mark.keywords}
    return {"$ref": f"common.yaml#/$defs/{given['ref']}"} if "ref" in given else {**schema, **given}


def _unreadable(node: ast.expr, module: str) -> InputError:
    do = "Write str, int, float, bool, Literal, Sequence, Mapping, `| None`, Annotated with a range, or a name for one of these"
    return InputError(f"an option cannot have the type {ast.unparse(node)}", where=f"{source_of(module)}:{node.lineno}", do=do)
