"""Checkpoints by name: what a recipe, a table or a figure names must be one that the training of its system keeps, and can choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crosslign.config.cells import system_of
from crosslign.config.members import why_unread
from crosslign.config.project import Project
from crosslign.config.resolve import LAST, entry_of, is_untrained, kept_checkpoints
from crosslign.config.yaml_files import YamlFile, where_of
from crosslign.entries.papers import Base, Recipe
from crosslign.errors import InputError
from crosslign.registry import nearest

Place = tuple[str | int, ...]
Use = tuple[Place, str, str]
"""Where in a paper's file it stands (section, name, keys), the system, the checkpoint."""


def _recipes(project: Project) -> Iterator[tuple[str, str, Recipe]]:
    """Yield section, name and entry of every recipe, with what it takes over by `like`."""
    yield from (("systems", name, entry_of(project, name)) for name in project.systems)
    yield from (("finetunes", name, entry) for name, entry in project.finetunes.items())


def _own_uses(section: str, name: str, entry: Recipe) -> Iterator[Use]:
    """Yield the checkpoints of its own that a recipe has evaluated, by task or not."""
    named = entry.get("checkpoint", LAST)
    if isinstance(named, Mapping):
        yield from (((section, name, "checkpoint", task), name, checkpoint) for task, checkpoint in named.items())
    else:
        yield (section, name, "checkpoint"), name, named


def _base_uses(section: str, name: str, entry: Recipe) -> Iterator[Use]:
    base = entry.get("base") or Base()
    if "system" in base and "checkpoint" in base:
        yield (section, name, "base", "checkpoint"), base["system"], base["checkpoint"]


def _shown_uses(project: Project) -> Iterator[Use]:
    """Yield what columns of tables, and figures, show."""
    for name, table in project.tables.items():
        for index, column in enumerate(table["columns"]):
            systems = {system_of(row, column) for row in table["rows"] if "system" in row} if "checkpoint" in column else set()
            yield from ((("tables", name, "columns", index, "checkpoint"), system, column["checkpoint"]) for system in sorted(systems))
    for name, figure in project.figures.items():
        shown = figure["from"] if "checkpoint" in figure else ()
        yield from ((("figures", name, "checkpoint"), system, figure["checkpoint"]) for system in shown)


def check_checkpoints(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Check every checkpoint that something names, and the names that selections give.

    Args:
        project: the configuration, its systems and tasks looked up already.
        files: what was read, for messages.

    Raises:
        InputError: file, key, what is wrong and what there is instead.
    """

    def refuse(place: Place, what: str, why: str = "", do: str = "") -> InputError:
        relative = project.file_of(str(place[1]))
        return InputError(what, where=where_of(files, relative, place), why=why, do=do)

    def look_up(use: Use, entry: Recipe) -> None:
        place, system, checkpoint = use
        kept = kept_checkpoints(entry)
        if checkpoint not in kept:
            raise refuse(place, f"{system} keeps no checkpoint {checkpoint!r}", nearest(checkpoint, kept))

    shown = list(_shown_uses(project))
    for section, name, entry in _recipes(project):
        if LAST in entry.get("select", {}):
            do = "Give the selection another name"
            raise refuse((section, name, "select", LAST), f"{LAST!r} is the checkpoint after the last step", do=do)
        for choice, select in entry.get("select", {}).items() if section == "systems" else ():
            if unread := why_unread(project, name, project.tasks[select["task"]]["texts"].values()):
                raise refuse((section, name, "select", choice, "task"), f"{name} cannot read {select['task']}", unread)
        for use in _own_uses(section, name, entry):
            task = use[0][3] if len(use[0]) > 3 else "default"
            if task != "default" and task not in project.tasks:
                raise refuse(use[0], f"unknown task {task!r}", nearest(str(task), ["default", *project.tasks]))
            look_up(use, entry)
        shown += _base_uses(section, name, entry)
    for use in shown:
        if not is_untrained(project, use[1]):
            look_up(use, entry_of(project, use[1]))
