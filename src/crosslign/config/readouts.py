"""Readouts by name, and what an evaluation makes of them: another length or prefix, or vectors not scaled to unit length."""

from __future__ import annotations

from typing import cast

from crosslign.config.project import Project, remembered
from crosslign.entries.catalog import Readout
from crosslign.errors import InputError

RAW = "_raw"
"""End of the name of a readout that leaves vectors as long as they come."""
SHORTEST = 2
"""Tokens of the shortest text that is read: the special ones."""


def split_length(name: str) -> tuple[str, int | None]:
    """Split `cls_t96` into the readout and the length that it gets; None where the name ends otherwise."""
    base, mark, length = name.rpartition("_t")
    return (base, int(length)) if mark and length.isdigit() else (name, None)


@remembered
def readout(project: Project, name: str) -> Readout:
    """Return a readout by name.

    `<readout>_t96` has that maximal length, `<readout>_raw` leaves vectors as long as they come, and `<readout>_passage` has the prefix
    that the readout calls `passage`.

    Raises:
        InputError: no such readout.
    """
    if name in project.readouts:
        return cast(Readout, {key: value for key, value in project.readouts[name].items() if key != "prefixes"})
    base, length = split_length(name)
    if length is not None and length >= SHORTEST:
        return {**readout(project, base), "max_length": length}
    if name.endswith(RAW):
        return {**readout(project, name.removesuffix(RAW)), "normalise": False}
    base, _, prefix = name.rpartition("_")
    if prefix in prefixes_of(project, base):
        return {**readout(project, base), "prefix": prefixes_of(project, base)[prefix]}
    raise InputError(f"unknown readout {name!r}", where="config/encoders.yaml: readouts")


def prefixes_of(project: Project, name: str) -> dict[str, str]:
    """Return the prefixes that a readout has for texts of several kinds, by their names."""
    return dict(project.readouts[name].get("prefixes", {})) if name in project.readouts else {}


def prefixed(project: Project, name: str, prefix: str) -> str:
    """Return the name of a readout with the prefix of this name; the same name where it has none of that name, or puts it anyway."""
    own = prefixes_of(project, name)
    if prefix in own and own[prefix] != project.readouts[name]["prefix"]:
        return f"{name}_{prefix}"
    _, length = split_length(name)
    end = RAW if length is None else f"_t{length}"
    if name in project.readouts or not name.endswith(end):
        return name
    return prefixed(project, name.removesuffix(end), prefix) + end


def _without_length(project: Project, name: str) -> str:
    """Return the readout that differs from this one in its length alone, by the shorter name; the name itself where there is none."""
    base, length = split_length(name)
    if length is None:
        return name
    try:
        same = {**readout(project, base), "max_length": length} == readout(project, name)
    except InputError:
        return name
    return base if same else name


@remembered
def variant(project: Project, name: str, length: int | None = None, raw: bool = False) -> str:
    """Return the name of a readout with another length, or without scaling; the same name for the same entry, so that it is encoded once.

    Args:
        project: the configuration.
        name: a readout.
        length: tokens at most; its own, when left out.
        raw: leave vectors as long as they come.
    """
    own = readout(project, name)
    wanted = {**own, "max_length": length or own["max_length"], "normalise": own["normalise"] and not raw}
    if wanted == own:
        return name
    changed = _without_length(project, name)
    if wanted["normalise"] != own["normalise"]:
        changed += RAW
    if readout(project, changed)["max_length"] != wanted["max_length"]:
        changed += f"_t{wanted['max_length']}"
    return changed
