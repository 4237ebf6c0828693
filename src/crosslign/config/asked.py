"""Checks that the metrics which tables, figures and selections read are metrics of their scorers, when the configuration is read.

The scores would say it, too, but they come after every training. What a scorer gives, and whether the subsets of an evaluation reader are
languages, their modules say where they register. A test asks each of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from crosslign.config.cells import OF_ROW
from crosslign.config.project import Project, members_named
from crosslign.config.signatures import IMPLEMENTATIONS
from crosslign.config.yaml_files import YamlFile, where_of
from crosslign.entries.catalog import Task
from crosslign.errors import InputError
from crosslign.registry import nearest

Given = tuple[Sequence[str], Sequence[str], Sequence[str]]
"""Metrics, protocols and directions of records: each of one with each of the others."""
NONE = ("",)
OF_OPTION = re.compile(r"(.*)\{(\w+)(?::(\w+))?\}(.*)")
"""What stands for the values of an option in a name that a scorer gives."""
LANGUAGES = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?")
"""A language or pair, with a script or not, where an evaluation corpus does not list its own."""
KINDS = ("metric", "protocol", "direction")


def given(task: Task) -> list[Given] | None:
    """Return what a task's scorer gives: what it declares as `gives`, of its `protocols` those that the task names; None for no scorer."""
    found: list[Given] = []
    if (declared := _fact("scorers", task["scorer"], "gives")) is None:
        return None
    defaults = {
        name: schema["default"] for name, schema in IMPLEMENTATIONS["scorers"][task["scorer"]].options.items() if "default" in schema
    }
    options = {**defaults, **task}
    for metric, rest in declared.items():
        protocols, directions = (tuple(part) or NONE for part in (*rest, (), ())[:2])
        named = [protocol for name in protocols for protocol in _filled(name, options)]
        if kept := [protocol for protocol in named if protocol in options.get("protocols", named)]:
            found.append((_filled(metric, options), kept, directions))
    return found


def _filled(name: str, options: Mapping[str, Any]) -> list[str]:
    """Return the names that one stands for: `kl_{kl}` one for each value of the option `kl`, `{placeholder:clean}` `clean` if it is set."""
    if not (found := OF_OPTION.fullmatch(name)):
        return [name]
    before, option, word, after = found.groups()
    values = options.get(option, ())
    values = values if isinstance(values, list | tuple) else [values]
    return [f"{before}{value}{after}" for value in ([word] if word and values else values)]


def _fact(kind: str, name: str, fact: str) -> Any:
    """Return what an implementation says of itself where it is registered; None where it says nothing, or there is none."""
    found = IMPLEMENTATIONS[kind].get(name)
    return found and found.facts.get(fact)


def _sets(project: Project, task: Task) -> Iterator[Mapping[str, Any]]:
    """Yield the evaluation corpora that a task reads, parts of unions in place of these, with the union's languages where it has any."""
    for role, name in task["texts"].items():
        entry = project.corpora[name]
        parts = [part for part in entry.get("of", []) if task.get("splits", {}).get(role, part) == part] or [name]
        for part in parts:
            own = project.corpora[part]
            yield {**own, "langs": entry.get("langs") or own.get("langs", [])}


def _is_subset(project: Project, entry: Mapping[str, Any], subset: str) -> bool:
    """Tell whether a corpus may have a subset of this name; yes where that is not known before it is read."""
    kind = _fact("evaluations", entry.get("reader", ""), "subsets")
    if kind is None or (kind == "pairs" and "-" not in subset):
        return kind is None
    options = entry.get("options", {})
    listed = [*options.get("subsets", []), *options.get("pairs", []), *filter(None, [options.get("subset")])]
    if listed:
        return subset in listed
    if entry["reader"] == "tatoeba":
        files = entry.get("files") or [file["name"] for file in project.sources[entry["source"]].get("files", [])]
        return not files or subset in {file.rpartition(".")[2] for file in files}
    langs = {lang.replace("-", "_") for lang in entry["langs"]}
    return set(subset.split("-")) <= langs | {"all"} if langs else LANGUAGES.fullmatch(subset) is not None


def _named(task: Mapping[str, Any]) -> set[str]:
    """Return the subsets that a task names itself: its averages, what they are made of, its groups of languages, its main one."""
    groups = {**task.get("averages", {}), **task.get("languages", {})}
    members = {subset for value in groups.values() if isinstance(value, list) for subset in value}
    return {*groups, *(set() if "languages" in task else members), task["main"]["subset"]}


def _refused(project: Project, asked: Mapping[str, Any]) -> tuple[str, str, Collection[str]] | None:
    """Return what a task does not give of what is asked: its kind, its name, and what there is; None where all is there."""
    task = project.tasks[asked["task"]]
    left = given(task)
    for place, kind in enumerate(KINDS):
        if left is None or kind not in asked:
            continue
        kept = [records for records in left if asked[kind] in records[place]]
        if not kept:
            return kind, asked[kind], {name for records in left for name in records[place]}
        left = kept
    named, subset = _named(task), asked.get("subset")
    sets = [] if "languages" in task else _sets(project, task)
    if subset is None or subset in named or any(_is_subset(project, entry, subset) for entry in sets):
        return None
    return "subset", subset, named


def _check_members(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse a main score, or an average, of a subset that no evaluation corpus of its task may have."""
    for name, task in project.tasks.items():
        averages, sets = task.get("averages", {}), list(_sets(project, task))
        named = [(("main", "subset"), task["main"]["subset"])]
        for average, value in averages.items():
            named += [(("averages", average), subset) for subset in members_named(value)]
        for keys, subset in named if "languages" not in task else ():
            if subset not in averages and not any(_is_subset(project, entry, subset) for entry in sets):
                where = where_of(files, "config/tasks.yaml", ("tasks", name, *keys))
                why = f"its averages are {', '.join(averages) or 'none'}, its evaluation corpora {', '.join(task['texts'].values())}"
                raise InputError(f"{name} has no subset {subset!r}", where=where, why=why)


Asked = tuple[str, Sequence[str | int], Mapping[str, Any]]
"""(file, keys, what is asked)"""


def _of_tables(project: Project) -> Iterator[Asked]:
    for name, table in project.tables.items():
        file = project.file_of(name)
        run: Sequence[Mapping[str, Any]] = [row for row in table["rows"] if "system" in row] or [{}]
        for index, column in enumerate(table["columns"]):
            keys = ("tables", name, "columns", index)
            named: Sequence[Any] = [column] if "task" in column else column.get("mean_of", [])
            parts = [part for part in named if not isinstance(part, str)]
            for part in parts:
                for of_row in dict.fromkeys(tuple(row.get(kind, part.get(kind, "")) for kind in OF_ROW) for row in run):
                    yield file, keys, {**part, **dict(zip(OF_ROW, of_row, strict=True))}


def _of_figures(project: Project) -> Iterator[Asked]:
    for name, figure in project.figures.items():
        for index, cell in enumerate(figure.get("cells", [])):
            keys = ("figures", name, "cells", index)
            yield project.file_of(name), keys, {"protocol": "", "direction": "", **cell}


def _of_selections(project: Project) -> Iterator[Asked]:
    for section in ("systems", "finetunes"):
        for name, recipe in getattr(project, section).items():
            for choice, select in recipe.get("select", {}).items():
                yield project.file_of(name), (section, name, "select", choice), select
            if "by" in recipe.get("tune", {}):
                yield project.file_of(name), (section, name, "tune", "by"), recipe["tune"]["by"]


def _of_tasks(project: Project) -> Iterator[Asked]:
    """Yield what tasks name as their main score; its subset may be any, since a task's own names are known by it."""
    for name, task in project.tasks.items():
        main = {key: value for key, value in task["main"].items() if key != "subset"}
        yield "config/tasks.yaml", ("tasks", name, "main"), {"task": name, "protocol": "", "direction": "", **main}


def check_asked(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse what a column, a figure, a selection or a task's main score asks of an evaluation that its scorer does not give.

    Raises:
        InputError: file, key, the subset, metric, protocol or direction, and those that there are.
    """
    _check_members(project, files)
    for asked_by in (_of_tasks, _of_tables, _of_figures, _of_selections):
        for file, keys, asked in asked_by(project):
            if wrong := _refused(project, asked):
                kind, value, allowed = wrong
                what = f"{asked['task']} has no {kind} {value!r}" if value else f"{asked['task']} has no scores without a {kind}"
                names = sorted(filter(None, allowed))
                raise InputError(what, where=where_of(files, file, (*keys, kind)), why=nearest(value, names))
