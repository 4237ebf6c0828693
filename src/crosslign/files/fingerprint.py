"""A fingerprint of code: it changes when a computation may change, not when a comment does, or what an error says.

It stands in lineage as information; what makes results again is a version (`crosslign.config.versions`).
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator
from typing import TypeGuard

from crosslign.errors import InputError, NetworkError, ResourceError, StoppedError
from crosslign.registry import source_of

PACKAGE = "crosslign"
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where a node of a syntax tree has statements."""
ERRORS = frozenset(error.__name__ for error in (InputError, NetworkError, ResourceError, StoppedError))
"""Errors that end a job with words for people, and carry nothing else."""


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield a module and the statements below it, taking docstrings out, and the words of errors.

    Expressions, which are most nodes, are passed over.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)] or [ast.Pass()]
        elif isinstance(node, ast.Raise) and _is_error(node.exc):
            node.exc = node.exc.func
        yield node
        for name in BLOCKS:
            block = getattr(node, name, None)
            waiting += block if isinstance(block, list) else []


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def _is_error(raised: ast.expr | None) -> TypeGuard[ast.Call]:
    return isinstance(raised, ast.Call) and isinstance(raised.func, ast.Name) and raised.func.id in ERRORS


@functools.cache
def _parsed(module: str) -> tuple[str, frozenset[str]]:
    """Return the dump of a module's syntax tree and the project modules that it imports."""
    path = source_of(module)
    assert path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported: set[str] = set()
    for node in _statements(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        imported.update(name for name in names if name.split(".")[0] == PACKAGE and source_of(name))
    return ast.dump(tree), frozenset(imported)


def modules_of(module: str) -> list[str]:
    """Return `module` and every project module that it imports, directly or not, sorted."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting.extend(_parsed(name)[1])
    return sorted(seen)


@functools.cache
def fingerprint(*modules: str) -> str:
    """Return 16 hexadecimal digits over the syntax trees, docstrings and words of errors left out, of modules and their imports.

    Args:
        modules: dotted names inside the package; an extension point found by name (a reader, an objective) is named
            beside the stage's own module, since it is not imported by it.
    """
    names = sorted({name for module in modules for name in modules_of(module)})
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\n{_parsed(name)[0]}\n".encode())
    return digest.hexdigest()[:16]
