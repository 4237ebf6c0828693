"""Source files that the targets of a run need: present, to be downloaded, or to be fetched by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.config.catalog import describe, local_file, source_kind
from crosslign.config.cells import counted, system_of
from crosslign.config.graph import Node, source_file
from crosslign.config.mining import encoding_node, mine_recipe
from crosslign.config.project import Project
from crosslign.config.settings import PAGES
from crosslign.config.targets import GROUPS, covered, figures_of, minings_of, tables_of
from crosslign.config.uses import file_state, is_there, own_path, uses
from crosslign.errors import InputError
from crosslign.registry import nearest

STATES = ("here", "synthetic", "mirror", "fetch", "by hand", "withdrawn")


@dataclass(frozen=True)
class FileNeed:
    """One file that a target needs.

    Attributes:
        source: id of the catalog's source.
        file: name of the file.
        path: where it lies once it is there; for a file to be had by hand, where to put it.
        bytes: size as published, None where nobody said.
        about_bytes: rough size where `bytes` is not known, None where nobody said.
        sha256: checksum as published, empty where it is recorded at the first download.
        licence: licence of the bytes.
        origin: URL, package, hub path, OPUS corpus or folder that it comes from.
        state: one of `STATES`: `here` it lies at `path`; `synthetic` the scale writes it; `mirror` a mirror has it;
            `fetch` it can be downloaded; `by hand` a person must put it there; `withdrawn` nobody gives it any more.
        used_by: ids of the corpora, or of the encoders, that read it.
        how: how a person gets it, in words.
        in_mirror: path in a mirror that supplies it by name; empty for an encoder.
    """

    source: str
    file: str
    path: Path
    bytes: int | None
    about_bytes: int | None
    sha256: str
    licence: str
    origin: str
    state: str
    used_by: tuple[str, ...]
    how: str = ""
    in_mirror: str = ""


def _nodes(project: Project, target: str) -> Iterator[Node]:
    """Yield what a target needs: a table, figure, system (`a+b` with fine-tunes), training set, view or corpus, a paper, page or group.

    Raises:
        InputError: nothing has that id; the nearest and all allowed ones are named.
    """
    sections = {"examples": project.examples, "system": {**project.systems, **project.encoders}}
    sections["corpus"] = {**project.corpora, **project.views}
    kind = next((kind for kind, entries in sections.items() if target in entries), "")
    base, *finetunes = target.split("+")
    if target in project.settings["mine"]:
        yield encoding_node(project, mine_recipe(project, target))
    elif target in (*GROUPS, *project.settings["papers"], *project.tables, *project.figures):
        tables, figures = covered(project) if target in PAGES else (tables_of(project, target), figures_of(project, target))
        for table in tables:
            yield from _of_table(project.tables[table])
        for figure in figures:
            yield from _of_figure(project.figures[figure])
        for name in minings_of(project, target):
            yield encoding_node(project, mine_recipe(project, name))
    elif kind or (base in sections["system"] and all(one in project.finetunes for one in finetunes)):
        yield kind or "system", target
    else:
        others = [project.tables, project.figures, project.examples, sections["system"], sections["corpus"]]
        names = [*GROUPS, *project.settings["papers"], *project.settings["mine"], *(key for entries in others for key in entries)]
        raise InputError(f"unknown target {target!r}", why=nearest(target, names))


def _of_table(entry: Mapping[str, Any]) -> Iterator[Node]:
    for column in entry["columns"]:
        for named in [counted(row, column) for row in entry["rows"]] if "count" in column else ():
            yield from (("corpus", corpus) for corpus in named.get("corpora", []))
            yield from (("examples", examples) for examples in named.get("examples", []))
        parts = [part for part in column.get("mean_of", []) if not isinstance(part, str)] or [column]
        for task in (part["task"] for part in parts if "task" in part and not column.get("reason")):
            yield "task", task
            yield from (("system", system_of(row, column)) for row in entry["rows"] if "system" in row and not row.get("reason"))


def _of_figure(entry: Mapping[str, Any]) -> Iterator[Node]:
    yield from (("system", system) for system in [*entry["from"], *entry.get("against", [])])
    yield from (("task", cell["task"]) for cell in entry.get("cells", []))
    yield from (("corpus", entry[key]) for key in ("text_set",) if key in entry)


def data_plan(project: Project, targets: Sequence[str]) -> list[FileNeed]:
    """Return every data file that targets need, whatever is built already. Nothing is read, hashed or asked for.

    A base encoder that comes from the hub, or from a folder, counts as one file: its weights, of 4 bytes a parameter.

    Args:
        project: the configuration.
        targets: ids of tables, figures, systems, training sets, views or corpora; `all`, `all_tables`, `all_figures`, `report`.

    Returns:
        One entry a file, sorted by source and file.

    Raises:
        InputError: nothing has that id; the nearest and all allowed ones are named.
    """
    found = uses(project, [node for target in targets for node in _nodes(project, target)])
    gathered: dict[tuple[str, str], dict[str, str]] = {}
    for source_name, file_name, user, access in found.files():
        gathered.setdefault((source_name, file_name), {})[user] = access
    needs = []
    for (name, file_name), users in sorted(gathered.items()):
        source, file = project.sources[name], source_file(project, name, file_name)
        path = project.paths.download(name, file_name)
        access = next((value for value in users.values() if value != "open"), "open")
        state = file_state(project, name, file, access)
        if source_kind(source) == "local" and state in ("here", "by hand"):
            path = local_file(source, file)
        needs.append(
            FileNeed(
                source=name,
                file=file_name,
                path=path,
                bytes=path.stat().st_size if state == "here" else file.get("bytes"),
                about_bytes=file.get("about_bytes"),
                sha256=file.get("sha256", ""),
                licence=source["licence"],
                origin=describe(source, file),
                state=state,
                used_by=tuple(users),
                how=source.get("how", ""),
                in_mirror=f"{name}/{file_name}",
            )
        )
    needs += [need for name in found.encoders if (need := _weights(project, name))]
    return sorted(needs, key=lambda need: (need.source, need.file))


def _weights(project: Project, name: str) -> FileNeed | None:
    """Return what an encoder of the hub or of a folder needs; None for others."""
    entry = project.encoders[name]
    size = int(entry["parameters_m"] * 4e6) if "parameters_m" in entry else None
    prepared = project.paths.encoder(name)
    if "hub" in entry:
        state, path = ("here" if prepared.exists() else "fetch"), prepared
        origin, file = f"hub:{entry['hub']}@{entry.get('revision', 'main')}", entry["hub"]
    elif "path" in entry:
        path = own_path(project, name)
        state, origin, file = ("here" if is_there(project, name) else "by hand"), entry["path"], path.name
    else:
        return None
    return FileNeed(name, file, path, None, size, "", entry["licence"], origin, state, (name,), entry.get("citation", ""))
