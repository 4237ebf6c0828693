"""Checks of tuned systems: what is tried, by what it is chosen, and that the rows of a table are tuned alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crosslign.config.cells import evaluated, row_systems
from crosslign.config.entry_keys import TRAIN_DEFAULTS, head_of
from crosslign.config.kept_out import evaluations_of
from crosslign.config.members import why_unread
from crosslign.config.options import OptionChecker, check_paper
from crosslign.config.project import Project
from crosslign.config.resolve import entry_of, merge, put, value_at
from crosslign.config.schema import check
from crosslign.config.trials import FIRST, points, trials_behind, trials_of
from crosslign.config.yaml_files import YamlFile, where_of
from crosslign.console import number_of
from crosslign.errors import InputError

FIXED = ("budget", "steps", "epochs", "max_length", "threads", "batch", "micro_batch", "size")
"""What cannot be tuned: another cost, other text or other rows would be compared."""
FEWEST_SEEDS = 5


def _printed(project: Project) -> Iterator[tuple[str, str]]:
    """Yield each evaluation corpus that a table prints scores of, with the table."""
    for name, table in project.tables.items():
        for column in evaluated(table["columns"]):
            yield from ((corpus, name) for corpus in evaluations_of(project, project.tasks[column["task"]]))


class _Tuned:
    """One tuned system, for messages."""

    def __init__(self, project: Project, files: Mapping[str, YamlFile], system: str) -> None:
        self.project, self.files, self.system = project, files, system
        self.entry = entry_of(project, system)
        self.tune: Mapping[str, Any] = self.entry["tune"]

    def refuse(self, what: str, place: tuple[str, ...], why: str = "", do: str = "") -> InputError:
        """Return the error of one place of its `tune`."""
        where = where_of(self.files, self.project.file_of(self.system), ("systems", self.system, "tune", *place))
        return InputError(what, where=where, why=why, do=do)


def _check_values(tuned: _Tuned) -> None:
    """Refuse values of what is not a number of the recipe, cannot be tuned, or that the recipe may not have."""
    entry = {**tuned.entry, "train": merge(TRAIN_DEFAULTS, tuned.entry["train"])}
    for path, values in tuned.tune["values"].items():
        try:
            own = value_at(entry, path)
        except InputError as error:
            raise tuned.refuse(f"{tuned.system} has no setting {path!r}", ("values", path), error.why, "Write it in the recipe") from error
        if isinstance(own, bool) or not isinstance(own, int | float) or path.rpartition(".")[2] in FIXED:
            why = (
                "it changes cost or data"
                if isinstance(own, int | float) and not isinstance(own, bool)
                else f"found {own!r}, which is not a number"
            )
            raise tuned.refuse(f"{path!r} cannot be tuned", ("values", path), why)
        for value in values:
            tried = put({key: inner for key, inner in tuned.entry.items() if key != "tune"}, {path: value})
            file = YamlFile(Path(tuned.project.file_of(tuned.system)), {"systems": {tuned.system: tried}}, {})
            try:
                check(file, "paper")
                check_paper(OptionChecker(file), file.content)
            except InputError as error:
                raise tuned.refuse(f"{value!r} cannot be tried: {error.what}", ("values", path), error.why, error.do) from error


def _check_trials(tuned: _Tuned) -> None:
    entry, tune = tuned.entry, tuned.tune
    for key in ("select", "checkpoint"):
        if key in entry:
            why = "trials and runs are scored after their last step"
            raise tuned.refuse(f"a tuned system cannot have `{key}`", (), why, f"Remove `{key}`")
    grid = len(points({"values": tune["values"]}))
    if grid < 2 or tune.get("trials", grid) > grid:
        raise tuned.refuse(
            f"{number_of(tune.get('trials', grid), 'trial')} of {grid} points", ("trials",) if "trials" in tune else ("values",)
        )
    if taken := sorted(set(trials_of(tuned.project, tuned.system)) & set(tuned.project.systems)):
        raise tuned.refuse(f"the name {taken[0]!r} is taken", (), "a trial has this name", "Rename that system")
    seeds = entry.get("seeds", [])
    if len(seeds) < FEWEST_SEEDS or tune.get("seed", FIRST) in seeds:
        why = f"found {list(seeds)} for the system, {tune.get('seed', FIRST)} for the trials"
        do = f"Give the system {FEWEST_SEEDS} or more `seeds:`, and its trials a `seed:` that is not among them"
        raise tuned.refuse(f"a tuned system needs {FEWEST_SEEDS} or more seeds that differ from the seed of its trials", (), why, do)


def _check_dev(tuned: _Tuned, printed: Mapping[str, str]) -> None:
    """Refuse a dev evaluation that the system cannot be scored on, or whose sentences a table prints scores of."""
    name = tuned.tune["by"]["task"]
    task = tuned.project.tasks[name]
    if task["output"] == "logits" and head_of(tuned.entry) is None:
        raise tuned.refuse(f"{name} needs a classification head", ("by", "task"), "no term is a cross_entropy over whole rows")
    if unread := why_unread(tuned.project, tuned.system, task["texts"].values()):
        raise tuned.refuse(f"{tuned.system} cannot read {name}", ("by", "task"), unread)
    if shown := sorted(evaluations_of(tuned.project, task) & set(printed)):
        why = f"the table {printed[shown[0]]} prints scores on {shown[0]}"
        raise tuned.refuse(f"{name} cannot choose values", ("by", "task"), why, "Choose by a dev evaluation that no table prints")


def check_tuning(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Check every tuned system, and that the trained rows of a table have equally many trials.

    Args:
        project: the configuration, its systems and tasks looked up already.
        files: what was read, for messages.

    Raises:
        InputError: file, key, what is wrong and what to do.
    """
    tuned = [_Tuned(project, files, system) for system in project.systems if "tune" in entry_of(project, system)]
    if not tuned:
        return
    printed = dict(_printed(project))
    for one in tuned:
        if missing := [key for key in ("values", "by") if key not in one.tune]:
            raise one.refuse(f"{one.system} has no `tune: {missing[0]}`", (), "", "Write it, or start from a recipe that has it: `like:`")
        _check_values(one)
        _check_trials(one)
        _check_dev(one, printed)
    for name, table in project.tables.items():
        took = [(index, system, trials_behind(project, system)) for index, row in enumerate(row_systems(project, table)) for system in row]
        most = max((trials for *_, trials in took), default=0)
        for index, system, trials in took:
            if trials != most:
                where = where_of(files, project.file_of(name), ("tables", name, "rows", index, "system"))
                why = f"{system} has {trials} trials, including those of all systems that it starts from; another row has {most}"
                raise InputError(f"rows of {name} have unequal numbers of trials", where=where, why=why, do="Fix `tune:`")
