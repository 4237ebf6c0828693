"""Options of seams: each reader, filter, builder, part, objective and scorer has its own schema in `options.yaml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.config.entry_keys import options_of
from crosslign.config.schema import check, schemas_of
from crosslign.config.yaml_files import YamlFile
from crosslign.errors import InputError
from crosslign.registry import nearest


class OptionChecker:
    """Checks the options of one file's entries against `options.yaml`.

    Args:
        schemas: folder of the schemas.
        file: the file that the entries stand in, for messages.
    """

    def __init__(self, schemas: Path, file: YamlFile) -> None:
        self.schemas = schemas
        self.file = file
        self.known: Mapping[str, Mapping[str, Any]] = schemas_of(schemas)["options"]["$defs"]

    def check(self, seam: str, name: str, options: Mapping[str, Any], keys: Sequence[str | int]) -> None:
        """Check that `name` is an implementation of `seam` and that it takes these options."""
        allowed = self.known[seam]["properties"]
        if name not in allowed:
            raise InputError(
                f"unknown {seam.replace('_', ' ').rstrip('s')} {name!r}", where=self.file.where(keys), why=nearest(name, list(allowed))
            )
        prefix = tuple(keys)
        content = {seam: {name: dict(options)}}
        try:
            check(YamlFile(self.file.path, content, {}), self.schemas, "options")
            return
        except InputError:
            pass  # said again below, with its line: finding lines for every entry would take longer than the checks
        shifted = {(seam, name, *at[len(prefix) :]): line for at, line in self.file.lines.items() if at[: len(prefix)] == prefix}
        try:
            check(YamlFile(self.file.path, content, shifted), self.schemas, "options")
        except InputError as error:
            # The message must show the place in the user's file, not in the piece that was checked.
            raise InputError(
                error.what, where=error.where.replace(f"{seam}.{name}", ".".join(map(str, prefix)), 1), why=error.why, do=error.do
            ) from None


def check_corpora(checker: OptionChecker, corpora: Mapping[str, Any]) -> None:
    """Check readers, evaluation readers and filters of a catalog."""
    for name, entry in corpora.items():
        seam = "evaluations" if entry["kind"] == "evaluation" else "readers"
        if "reader" in entry:
            checker.check(seam, entry["reader"], entry.get("options", {}), ("corpora", name, "options"))
        for index, step in enumerate(entry.get("filters", [])):
            ((rule, options),) = step.items()
            checker.check("filters", rule, options or {}, ("corpora", name, "filters", index, rule))


def _recipes(paper: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for section in ("systems", "finetunes"):
        for name, recipe in paper.get(section, {}).items():
            yield section, name, recipe


def check_paper(checker: OptionChecker, paper: Mapping[str, Any]) -> None:
    """Check builders, parts and objectives of a paper's file."""
    for section, seam in (("views", "views"), ("examples", "example_builders")):
        for name, entry in paper.get(section, {}).items():
            checker.check(seam, entry["builder"], options_of(section, entry), (section, name))
            for translator, options in entry.get("translator", {}).items():
                checker.check("translators", translator, options or {}, (section, name, "translator", translator))
    for section, name, recipe in _recipes(paper):
        for part, entry in recipe.get("parts", {}).items():
            checker.check("parts", entry["kind"], options_of("parts", entry), (section, name, "parts", part))
        for index, term in enumerate(recipe.get("terms", [])):
            checker.check("objectives", term["objective"], options_of("terms", term), (section, name, "terms", index))


def check_tasks(checker: OptionChecker, tasks: Mapping[str, Any]) -> None:
    """Check the scorers of a task file."""
    for name, task in tasks.items():
        checker.check("scorers", task["scorer"], options_of("tasks", task), ("tasks", name))
