"""Readouts by name, and what an evaluation makes of them: another length, or vectors that are not scaled to unit length."""

from __future__ import annotations

from typing import Any

from crosslign.config.project import Project
from crosslign.errors import InputError

RAW = "_raw"
"""End of the name of a readout that leaves vectors as long as they come."""
SHORTEST = 2
"""Tokens of the shortest text that is read: the special ones."""


def split_length(name: str) -> tuple[str, int | None]:
    """Split `cls_t96` into the readout and the length that it gets; None where the name ends otherwise."""
    base, mark, length = name.rpartition("_t")
    return (base, int(length)) if mark and length.isdigit() else (name, None)


def readout(project: Project, name: str) -> dict[str, Any]:
    """Return a readout by name: `<readout>_t96` has that maximal length, `<readout>_raw` leaves vectors as long as they come.

    Raises:
        InputError: no such readout.
    """
    if name in project.readouts:
        return dict(project.readouts[name])
    base, length = split_length(name)
    if length is not None and length >= SHORTEST:
        return {**readout(project, base), "max_length": length}
    if name.endswith(RAW):
        return {**readout(project, name.removesuffix(RAW)), "normalise": False}
    raise InputError(f"unknown readout {name!r}", where="config/encoders.yaml: readouts")


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
