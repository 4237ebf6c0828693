"""Checks of references between entries: none dangles, and there is no cycle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from crosslign.config.baselines import named_rows
from crosslign.config.cells import is_scored, system_of
from crosslign.config.figures import ACCOMPANIED, OF_VECTORS
from crosslign.config.project import Project, filter_corpora, members_named, view_corpora
from crosslign.config.readouts import RAW, SHORTEST, prefixes_of, split_length
from crosslign.config.resolve import entry_of
from crosslign.config.switched_off import switched_off
from crosslign.config.yaml_files import YamlFile, where_of
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.languages import normalise, pair_of
from crosslign.registry import nearest

Use = tuple[str, Sequence[str | int], str, str]
"""(file, keys, kind of the thing named, its name)"""


FILES = {section: f"config/{section}.yaml" for section in ("corpora", "encoders", "tasks")}
"""Files of the sections whose entries stand in one; those of others are `file_of` their names."""
RECIPE = (
    ("base encoder", "encoder"), ("base encoders each", "encoder"), ("base system", "system"), ("like", "trained system"),
    ("readout", "readout"), ("terms * examples", "examples"), ("select * task", "task"), ("tune by task", "task"),
)  # fmt: skip
REFERENCES: Mapping[str, Sequence[tuple[str, str]]] = {
    "corpora": (
        ("source", "source"), ("from each", "corpus"), ("of each", "evaluation corpus"), ("expect_none each", "evaluation corpus"),
        ("filters * * corpora each", "corpus"),
    ),
    "encoders": (("source", "source"), ("readout", "readout"), ("prune corpora each", "corpus")),
    "tasks": (("texts *", "evaluation corpus"), ("readout", "readout")),
    "examples": (
        ("from each", "training corpus or view"), ("decontaminate each", "evaluation corpus"), ("of each", "examples"),
        ("teacher", "encoder"),
    ),
    "systems": RECIPE,
    "finetunes": RECIPE,
    "tables": (
        ("columns * task", "task"), ("columns * readout", "readout"), ("columns * setting_of", "trained system"),
        ("columns * mean_of * task", "task"), ("rows * data * corpora each", "corpus"), ("rows * data * examples each", "examples"),
        ("readout", "readout"), ("rows * readout", "readout"), ("rows * columns * readout", "readout"),
    ),
    "figures": (("from each", "system"), ("against each", "system"), ("cells * task", "task"), ("text_set", "evaluation corpus")),
}  # fmt: skip
"""Where the entries of a section name others, and what these are: keys, `*` for any key or place, `each` for every one of a list."""


def _at(entry: Any, path: Sequence[str], keys: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield keys and name of whatever an entry has at a path of `REFERENCES`."""
    if not path:
        yield keys, entry
    elif path[0] in ("*", "each"):
        for key, inner in entry.items() if isinstance(entry, Mapping) else enumerate(entry):
            yield from _at(inner, path[1:], (*keys, key) if path[0] == "*" else keys)
    elif isinstance(entry, Mapping) and path[0] in entry:
        yield from _at(entry[path[0]], path[1:], (*keys, path[0]))


def _uses(project: Project) -> Iterator[Use]:
    """Yield every use of a name by an entry."""
    for section, references in REFERENCES.items():
        for name, entry in getattr(project, section).items():
            file = FILES.get(section) or project.file_of(name)
            for path, kind in references:
                yield from ((file, (section, name, *keys), kind, named) for keys, named in _at(entry, path.split()))
    for name, encoder in project.scale["encoders"].items():
        for named in {encoder, *([name] if name != "*" else [])}:
            yield f"config/scales/{project.settings['scale']}.yaml", ("encoders", name), "encoder", named
    for name, entry in project.corpora.items():
        yield from ((FILES["corpora"], ("corpora", name, "files"), f"file of {entry['source']}", one) for one in entry.get("files", []))
    for name, view in project.views.items():
        yield from ((project.file_of(name), ("views", name), "training corpus", corpus) for corpus in view_corpora(view))
    for name, task in project.tasks.items():
        yield from _role_uses(project, name, task)
    for name, table in project.tables.items():
        scored = [column for column in table["columns"] if is_scored(column)]
        for index, row in enumerate(table["rows"]):
            for system in sorted({system_of(row, column) for column in scored if "system" in row}):
                yield project.file_of(name), ("tables", name, "rows", index, "system"), "system", system


def _role_uses(project: Project, name: str, task: Mapping[str, Any]) -> Iterator[Use]:
    """Yield what a task says of its roles."""
    for key in ("lengths", "prefixes", "splits"):
        yield from ((FILES["tasks"], ("tasks", name, key, role), f"role of {name}", role) for role in task.get(key, {}))
    for role, split in task.get("splits", {}).items():
        corpus = task["texts"].get(role, "")
        if corpus in project.corpora and len(project.corpora[corpus].get("of", [])) > 1:
            yield FILES["tasks"], ("tasks", name, "splits", role), f"split of {corpus}", split
    for role, prefix in task.get("prefixes", {}).items():
        yield FILES["tasks"], ("tasks", name, "prefixes", role), "prefix of a readout", prefix


def _prefixed(project: Project) -> dict[str, str]:
    """Return the name of each readout with another of its prefixes, and the name of that prefix."""
    return {f"{name}_{prefix}": prefix for name in project.readouts for prefix in prefixes_of(project, name)}


def _check_prefixes(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse a readout whose name would stand for another one with a prefix."""
    for name, prefix in _prefixed(project).items():
        if name in project.readouts:
            where = where_of(files, "config/encoders.yaml", ("readouts", name))
            why = f"{name.removesuffix(f'_{prefix}')!r} with the prefix {prefix!r} has the same name"
            raise InputError(f"two readouts have the name {name!r}", where=where, why=why, do="Rename one of them")


def _known(project: Project) -> Mapping[str, Collection[str]]:
    systems = [*project.systems, *project.encoders]
    evaluations = {name for name, entry in project.corpora.items() if entry["kind"] == "evaluation"}
    training = [name for name in project.corpora if name not in evaluations]
    return {
        "source": project.sources,
        **{f"file of {name}": [file["name"] for file in source["files"]] for name, source in project.sources.items()},
        "corpus": project.corpora,
        "evaluation corpus": evaluations,
        "training corpus": training,
        "training corpus or view": [*training, *project.views],
        **{f"split of {name}": entry["of"] for name, entry in project.corpora.items() if "of" in entry},
        "encoder": project.encoders,
        "readout": [*project.readouts, *_prefixed(project)],
        "prefix of a readout": dict.fromkeys(_prefixed(project).values()),
        **{f"role of {name}": task["texts"] for name, task in project.tasks.items()},
        "task": project.tasks,
        "examples": project.examples,
        "system": systems,
        "trained system": project.systems,
    }


def _under(files: Mapping[str, YamlFile], file: str, *keys: str) -> Callable[[str], str]:
    """Return what tells the place of a name below some keys of a file."""
    return lambda name: where_of(files, file, (*keys, name))


def _check_cycles(kind: str, edges: Mapping[str, Sequence[str]], where: Callable[[str], str]) -> None:
    """Refuse a chain of names that comes back to where it began; `where` tells the place of one of them."""
    done: set[str] = set()

    def visit(name: str, chain: tuple[str, ...]) -> None:
        if name in chain:
            raise InputError(f"{kind} {name!r} is made from itself", where=where(name), why=" -> ".join([*chain, name]))
        if name in done:
            return
        for other in edges.get(name, ()):
            visit(other, (*chain, name))
        done.add(name)

    for name in edges:
        visit(name, ())


def _base_systems(recipe: Mapping[str, Any]) -> list[str]:
    """Return the system that a recipe goes on from, that below its fine-tunes (`X+siqa`)."""
    base = recipe.get("base", {}).get("system")
    return [base.partition("+")[0]] if base else []


def _exists(project: Project, kind: str, name: str, allowed: Collection[str]) -> bool:
    """Tell whether a name stands for something; a system may carry fine-tunes (`X+siqa+copa`), a readout a length (`cls_t64`)."""
    if name in allowed:
        return True
    if kind == "system":
        first, *chain = name.split("+")
        return bool(chain) and first in allowed and set(chain) <= set(project.finetunes)
    base, length = split_length(name)
    is_variant = name.endswith(RAW) if length is None else length >= SHORTEST
    return kind == "readout" and is_variant and base.removesuffix(RAW) in allowed


def _unknown(project: Project, kind: str, name: str, allowed: Collection[str]) -> tuple[str, str, str]:
    """Return what is wrong with a name that stands for nothing, the names that there are, and what to do."""
    if "corpus" in kind and name in project.corpora:
        return f"{name!r} is not {'an' if kind[0] in 'aeiou' else 'a'} {kind}", nearest(name, list(allowed)), ""
    first, *chain = name.split("+")
    if kind == "system" and chain and first in allowed:
        name = next(finetune for finetune in chain if finetune not in project.finetunes)
        return f"unknown fine-tune {name!r}", nearest(name, list(project.finetunes)), switched_off(project, "finetunes", name)
    sections = {"system": "systems", "trained system": "systems", "examples": "examples", "training corpus or view": "views"}
    do = switched_off(project, sections[kind], first) if kind in sections else ""
    return f"unknown {kind} {name!r}", nearest(name, list(allowed)), do


def _languages_of(project: Project, name: str) -> set[str]:
    """Return the languages of a corpus or view."""
    if name in project.corpora:
        return set(map(normalise, project.corpora[name]["langs"]))
    view: Mapping[str, Any] = project.views[name]  # with the options of its builder
    read = {lang for corpus in view["from"] for lang in _languages_of(project, corpus)}
    return read.union(map(normalise, [*view.get("targets", []), *view.get("dictionaries", {})]))


def _check_languages(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse pairs in a language that no corpus of their training set has, and languages of which none has any: nothing would be built."""
    sets_by_name: Mapping[str, Mapping[str, Any]] = project.examples  # with the options of their builders
    for name, entry in sets_by_name.items():
        sets = [_languages_of(project, corpus) for corpus in entry.get("from", [])]
        if not sets or not all(sets):
            continue
        held, langs = set().union(*sets), entry.get("langs", [])
        missing = [("langs", lang) for lang in langs[:1] if held.isdisjoint(map(normalise, langs))]
        missing += [("pairs", lang) for pair in entry.get("pairs", []) for lang in pair_of(pair) if normalise(lang) not in held]
        for key, lang in missing[:1]:
            where = where_of(files, project.file_of(name), ("examples", name, key))
            why = f"they have {', '.join(sorted(held))}"
            raise InputError(f"no corpus of these examples has the language {lang!r}", where=where, why=why)


def _check_footnotes(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse a footnote whose row or column its table lacks, or whose row may be one of several."""
    for name, table in project.tables.items():
        for index, note in enumerate(table.get("footnotes", [])):
            at, file = note.get("at", {}), project.file_of(name)
            keys = ("tables", name, "footnotes", index, "at")
            where = where_of(files, file, keys)
            columns = [column["label"] for column in table["columns"]]
            if "column" in at and at["column"] not in columns:
                raise InputError(f"no column {at['column']!r} for this footnote", where=where, why=nearest(at["column"], columns))
            rows = named_rows(at, table["rows"]) if "row" in at else [0]
            if not rows:
                labels = [row["label"] for row in table["rows"]]
                raise InputError(f"no row {at['row']!r} for this footnote", where=where, why=nearest(at["row"], labels))
            if len(rows) > 1:
                groups = ", ".join(repr(table["rows"][place].get("group", "")) for place in rows)
                why = f"their groups are {groups}"
                raise InputError(f"{len(rows)} rows have the label {at['row']!r}", where=where, why=why, do="Name the row's group, too")


def _check_averages(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse an average over a column that its table lacks, that may be one of several, that holds no scores, or over itself."""
    for name, table in project.tables.items():
        labels = [column["label"] for column in table["columns"]]
        scored = [column["label"] for column in table["columns"] if "task" in column or "mean_of" in column]
        averages: dict[str, list[str]] = {}
        for index, column in enumerate(table["columns"]):
            members = [part for part in column.get("mean_of", []) if isinstance(part, str)]
            averages |= {column["label"]: members} if members else {}
            file, keys = project.file_of(name), ("tables", name, "columns", index, "mean_of")
            where = where_of(files, file, keys)
            for label in members:
                if label not in scored:
                    raise InputError(f"no column {label!r} to average over", where=where, why=nearest(label, scored))
                if labels.count(label) > 1:
                    raise InputError(f"{labels.count(label)} columns have the label {label!r}", where=where, do="Give each its own label")
        _check_cycles(f"column of {name}:", averages, _under(files, project.file_of(name), "tables", name, "columns"))


def _check_compared(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse a row that is to be compared with one that its table lacks, or that says something of a column that it lacks."""
    for name, table in project.tables.items():
        labels = [row["label"] for row in table["rows"]]
        columns = [column["label"] for column in table["columns"]]
        for index, row in enumerate(table["rows"]):
            for label in (label for label in row.get("columns", {}) if label not in columns):
                where = where_of(files, project.file_of(name), ("tables", name, "rows", index, "columns"))
                raise InputError(f"no column {label!r}", where=where, why=nearest(label, columns))
            others = labels[:index] + labels[index + 1 :]
            if "against" in row and row["against"] not in others:
                where = where_of(files, project.file_of(name), ("tables", name, "rows", index, "against"))
                raise InputError(f"no other row {row['against']!r} to compare with", where=where, why=nearest(row["against"], others))


def _check_figures(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse a figure that lacks what its kind reads or has what it cannot show, or whose lists are of another length than its systems."""
    needs = {"bars": ("cells",), "lines": ("cells", "x"), **dict.fromkeys(OF_VECTORS, ("text_set",))}
    figures: Mapping[str, Mapping[str, Any]] = project.figures
    for name, figure in figures.items():
        file = project.file_of(name)
        for key in needs.get(figure["kind"], ()):
            if key not in figure:
                raise InputError(f"a figure of kind {figure['kind']} needs `{key}`", where=where_of(files, file, ("figures", name)))
        if "companion" in figure and figure["kind"] not in ACCOMPANIED:
            where = where_of(files, file, ("figures", name, "companion"))
            raise InputError(
                f"a figure of kind {figure['kind']} cannot have a `companion`", where=where, why=f"{', '.join(ACCOMPANIED)} can"
            )
        for key in ("labels", "x", "places", "against", "against_labels"):
            if key in figure and len(figure[key]) != len(figure["from"]):
                what = f"{number_of(len(figure[key]), 'entry')} for {number_of(len(figure['from']), 'system')}"
                raise InputError(
                    what, where=where_of(files, file, ("figures", name, key)), do="Give one entry for each system, in the same order"
                )
        for key in ("against", "seen"):
            if "places" in figure and key in figure:
                raise InputError(f"bars with `places` cannot have `{key}`", where=where_of(files, file, ("figures", name, key)))
        untrained = [system for system in figure["from"] if system in project.encoders]
        if figure["kind"] == "curves" and untrained:
            where = where_of(files, file, ("figures", name, "from"))
            raise InputError(f"{untrained[0]!r} has no curve", where=where, why="it is a base encoder, which is not trained here")


def _check_circles(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse corpora, training sets, systems and averages that are made from themselves."""

    def place(section: str) -> Callable[[str], str]:
        return lambda name: where_of(files, project.file_of(name), (section, name))

    tasks: Mapping[str, Mapping[str, Any]] = project.tasks  # with the options of their scorers
    for name, task in tasks.items():
        for key in ("averages", "languages"):
            edges = {own: members_named(value) for own, value in task.get(key, {}).items()}
            _check_cycles(f"{key} of {name}:", edges, _under(files, "config/tasks.yaml", "tasks", name, key))
    corpora = {n: [*e.get("from", []), *e.get("of", []), *filter_corpora(e)] for n, e in project.corpora.items()}
    _check_cycles("corpus", corpora, _under(files, "config/corpora.yaml", "corpora"))
    _check_cycles("examples", {n: list(e.get("of", [])) for n, e in project.examples.items()}, place("examples"))
    _check_cycles("system", {n: _base_systems(entry_of(project, n)) for n in project.systems}, place("systems"))


def check_references(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Check every name that an entry uses, and that nothing is made from itself.

    Raises:
        InputError: file, key, the unknown name, and the allowed ones.
    """
    likes = {name: [recipe["like"]] if "like" in recipe else [] for name, recipe in project.systems.items()}
    _check_cycles("`like` of system", likes, lambda name: where_of(files, project.file_of(name), ("systems", name, "like")))
    known = _known(project)
    for file, keys, kind, name in _uses(project):
        allowed = known.get(kind, ())
        if not _exists(project, kind, name, allowed):
            what, why, do = _unknown(project, kind, name, allowed)
            raise InputError(what, where=where_of(files, file, keys), why=why, do=do)
    _check_prefixes(project, files)
    _check_languages(project, files)
    _check_footnotes(project, files)
    _check_averages(project, files)
    _check_compared(project, files)
    _check_figures(project, files)
    _check_circles(project, files)
