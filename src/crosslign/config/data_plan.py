"""Source files that the targets of a run need: present, to be downloaded, or to be fetched by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.config.catalog import describe, local_file, source_kind
from crosslign.config.cells import counted, system_of
from crosslign.config.mining import mine_recipe
from crosslign.config.project import Project
from crosslign.config.resolve import is_untrained
from crosslign.config.settings import PAGES
from crosslign.config.targets import GROUPS, covered, figures_of, tables_of
from crosslign.config.uses import Uses, file_state, is_there, own_path
from crosslign.errors import InputError
from crosslign.registry import nearest

STATES = ("here", "stand-in", "mirror", "fetch", "by hand", "withdrawn")


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
        state: one of `STATES`: `here` it lies at `path`; `stand-in` the scale writes it; `mirror` a mirror has it;
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


class _Uses(Uses):
    """What targets need."""

    def target(self, name: str) -> None:
        """Add a table, figure, system (`a+b` with fine-tunes), training set, view or corpus, or all of a paper, a page or a group."""
        project = self.project
        if name in GROUPS or name in project.settings["papers"]:
            tables, figures = covered(project) if name in PAGES else (tables_of(project, name), figures_of(project, name))
            for table in tables:
                self.table(table)
            for figure in figures:
                self.figure(figure)
            return
        if name in project.settings["mine"]:
            recipe = mine_recipe(project, name)
            if is_untrained(project, recipe["system"]):
                self.encoder(recipe["encoders"][0])
            else:
                self.system(recipe["system"])
            return
        known: Sequence[tuple[Mapping[str, Any], Callable[[str], None]]] = (
            (project.tables, self.table),
            (project.figures, self.figure),
            (project.examples, self.examples),
            ({**project.systems, **project.encoders}, self.system),
            ({**project.corpora, **project.views}, self.corpus),
        )
        base, _, finetunes = name.partition("+")
        if finetunes and base in known[3][0] and all(finetune in project.finetunes for finetune in finetunes.split("+")):
            self.system(name)
            return
        follow = next((follow for entries, follow in known if name in entries), None)
        if follow is None:
            names = [*GROUPS, *project.settings["papers"], *project.settings["mine"], *(key for entries, _ in known for key in entries)]
            raise InputError(f"unknown target {name!r}", why=nearest(name, names))
        follow(name)

    def table(self, name: str) -> None:
        entry = self.project.tables[name]
        for column in entry["columns"]:
            for named in [counted(row, column) for row in entry["rows"]] if "count" in column else ():
                for corpus in named.get("corpora", []):
                    self.corpus(corpus)
                for examples in named.get("examples", []):
                    self.examples(examples)
            parts = [part for part in column.get("mean_of", []) if not isinstance(part, str)] or [column]
            for task in (part["task"] for part in parts if "task" in part and not column.get("reason")):
                self.task(task)
                for row in entry["rows"]:
                    if "system" in row and not row.get("reason"):
                        self.system(system_of(row, column))

    def figure(self, name: str) -> None:
        entry = self.project.figures[name]
        for system in [*entry["from"], *entry.get("against", [])]:
            self.system(system)
        for cell in entry.get("cells", []):
            self.task(cell["task"])
        if "text_set" in entry:
            self.corpus(entry["text_set"])


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
    uses = _Uses(project)
    for target in targets:
        uses.target(target)
    gathered: dict[tuple[str, str], dict[str, str]] = {}
    for source, file, user, access in uses.files():
        gathered.setdefault((source, file), {})[user] = access
    needs = []
    for (name, file_name), users in sorted(gathered.items()):
        source = project.sources[name]
        file = next(file for file in source["files"] if file["name"] == file_name)
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
    needs += [need for name in uses.encoders if (need := _weights(project, name))]
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
