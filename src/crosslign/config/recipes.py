"""What a recipe names of itself: the parts of its terms, the checkpoints of its selection; found before any data is made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from crosslign.config.options import options_of
from crosslign.config.project import Project
from crosslign.config.resolve import LAST, entry_of, is_untrained, kept_checkpoints
from crosslign.config.schema import schemas_of
from crosslign.config.yaml_files import YamlFile, where_of
from crosslign.errors import InputError
from crosslign.registry import nearest

Place = tuple[str | int, ...]


class _Recipe:
    """One system or fine-tune, with what it takes over by `like`."""

    def __init__(self, project: Project, section: str, name: str, files: Mapping[str, YamlFile]) -> None:
        self.project, self.section, self.name, self.files = project, section, name, files
        self.entry: Mapping[str, Any] = entry_of(project, name) if section == "systems" else project.finetunes[name]
        self.parts: Mapping[str, Mapping[str, Any]] = self.entry.get("parts", {})

    def refuse(self, what: str, place: Place, why: str = "", do: str = "") -> InputError:
        """Return the error of one place of the recipe, which may stand in the recipe that it is `like`."""
        relative = f"config/papers/{self.project.paper_of[self.name]}.yaml"
        return InputError(what, where=where_of(self.files, relative, (self.section, self.name, *place)), why=why, do=do)

    def look_up(self, kind: str, name: str, allowed: Collection[str], place: Place) -> None:
        """Refuse a name that stands for nothing."""
        if name not in allowed:
            raise self.refuse(f"unknown {kind} {name!r}", place, nearest(name, list(allowed)))


def _named_parts(recipe: _Recipe, objectives: Mapping[str, Any]) -> Iterator[tuple[str, list[str], Place]]:
    """Yield each part that a term names, the kinds that will do (none: any), and where it does."""
    for index, term in enumerate(recipe.entry["terms"]):
        options = objectives[term["objective"]]["properties"]
        for option, value in options_of("terms", term).items():
            if "part" in options[option]:
                yield str(value), options[option]["part"], ("terms", index, option)


def _check_parts(recipe: _Recipe, objectives: Mapping[str, Any]) -> None:
    used = set()
    for name, kinds, place in _named_parts(recipe, objectives):
        recipe.look_up(f"part of {recipe.name}", name, recipe.parts, place)
        if kinds and recipe.parts[name]["kind"] not in kinds:
            raise recipe.refuse(f"the part {name!r} is of another kind", place, f"{recipe.parts[name]['kind']}, not {' or '.join(kinds)}")
        used.add(name)
    for name in sorted(set(recipe.parts) - used):
        do = "Name it in a term, such as `projection:` or `part:`, or take it out"
        raise recipe.refuse(f"no term uses the part {name!r}", ("parts", name), do=do)


def _check_checkpoints(recipe: _Recipe) -> None:
    if LAST in recipe.entry.get("select", {}):
        raise recipe.refuse(f"{LAST!r} is the checkpoint after the last step", ("select", LAST), do="Give the selection another name")
    named = recipe.entry.get("checkpoint", LAST)
    for task, name in named.items() if isinstance(named, Mapping) else [(None, named)]:
        place = ("checkpoint",) if task is None else ("checkpoint", task)
        if task is not None:
            recipe.look_up("task", task, ["default", *recipe.project.tasks], place)
        recipe.look_up(f"checkpoint of {recipe.name}", name, kept_checkpoints(recipe.entry), place)


def _check_base(recipe: _Recipe) -> None:
    base = recipe.entry.get("base", {})
    started = [name for name, part in recipe.parts.items() if part.get("start_from") == "base"]
    if "system" not in base or is_untrained(recipe.project, base["system"]):
        if started and recipe.section == "systems":
            place, why = ("parts", started[0], "start_from"), "it is an encoder, not a system"
            raise recipe.refuse("the base has no parts to start from", place, why)
        return
    under = entry_of(recipe.project, base["system"])
    if "checkpoint" in base:
        recipe.look_up(f"checkpoint of {base['system']}", base["checkpoint"], kept_checkpoints(under), ("base", "checkpoint"))
    for name in started:
        recipe.look_up(f"part of {base['system']}", name, under.get("parts", {}), ("parts", name, "start_from"))


def _check_batches(recipe: _Recipe) -> None:
    sizes: dict[str, int] = {}
    for index, term in enumerate(recipe.entry["terms"]):
        if sizes.setdefault(term["examples"], term["batch"]) != term["batch"]:
            why = f"{sizes[term['examples']]} and {term['batch']}"
            raise recipe.refuse(f"terms on the examples {term['examples']!r} share one batch", ("terms", index, "batch"), why)


def check_recipes(project: Project, files: Mapping[str, YamlFile], schemas: Path) -> None:
    """Check every recipe of the papers that were read, its entries looked up already.

    Args:
        project: the configuration.
        files: what was read, for messages.
        schemas: folder of the schemas; an objective's option that names a part says so there (`part:`, and which kinds will do).

    Raises:
        InputError: file, key, what is wrong and what there is instead.
    """
    objectives = schemas_of(schemas)["options"]["$defs"]["objectives"]["properties"]
    for section in ("systems", "finetunes"):
        for name in getattr(project, section):
            recipe = _Recipe(project, section, name, files)
            _check_parts(recipe, objectives)
            _check_checkpoints(recipe)
            _check_base(recipe)
            _check_batches(recipe)
