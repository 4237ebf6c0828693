"""Names in a term's options, checked: parts, and choices between variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from crosslign.errors import InputError
from crosslign.objectives.contract import Part
from crosslign.registry import nearest

P = TypeVar("P", bound=Part)


def part_of(parts: Mapping[str, Part], name: str, kind: type[P]) -> P:
    """Return the part called `name`.

    Args:
        parts: the recipe's parts.
        name: as the term names it.
        kind: class that it must be an instance of.

    Raises:
        InputError: the recipe has no such part, or one of another kind.
    """
    if name not in parts:
        raise InputError(f"a term names the part {name!r}, which the recipe lacks", where="parts", why=nearest(name, list(parts)))
    part = parts[name]
    if not isinstance(part, kind):
        own, wanted = (c.__module__.rsplit(".", 1)[-1] for c in (type(part), kind))
        raise InputError(f"the part {name!r} cannot do what a term wants of it", where="parts", why=f"its kind is {own}, not {wanted}")
    return part


def one_of(option: str, value: str, allowed: Sequence[str]) -> str:
    """Return the value of an option that names a variant.

    Raises:
        InputError: it is none of those allowed.
    """
    if value not in allowed:
        raise InputError(f"{option}: {value!r} is no variant of it", where=option, why=nearest(str(value), list(allowed)))
    return value
