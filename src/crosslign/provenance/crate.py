"""A finished table as a Workflow Run RO-Crate: the workflow, its run, the table, its scores, and every lineage file behind them.

The crate follows the Workflow Run Crate profile 0.6 (https://w3id.org/ro/wfrun/workflow/0.6). Its files lie as they do in a project, so
that the table can be rebuilt in it from the scores, and `crosslign explain` finds the whole chain there.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from crosslign.config.cells import table_scores
from crosslign.config.project import Project
from crosslign.config.yaml_files import load_yaml
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files import atomic_folder, atomic_path, read_json
from crosslign.files.atomic import require_replaceable
from crosslign.files.lineage import AGAIN, as_written, lineage_path, read_lineage
from crosslign.files.temporary import temporary_folder
from crosslign.files.text import LARGEST
from crosslign.paths import CATALOG, PUBLISHED, TABLE_FORMATS, origin_files, printed_path, resamples_path
from crosslign.provenance.artefact_states import require_whole
from crosslign.provenance.chain import Link, chain
from crosslign.registry import nearest

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.6": ("Process Run Crate", "0.6"),
    "https://w3id.org/ro/wfrun/workflow/0.6": ("Workflow Run Crate", "0.6"),
}
"""Profiles that the crate follows beside Workflow RO-Crate, which the library names itself."""
CONTEXT = "https://w3id.org/ro/terms/workflow-run/context"
FORMATS = {
    ".md": "text/markdown", ".csv": "text/csv", ".tex": "application/x-tex", ".html": "text/html", ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet", ".yaml": "application/yaml", ".py": "text/x-python", ".txt": "text/plain",
    ".rst": "text/x-rst", ".cff": "application/yaml", ".lock": "text/plain",
}  # fmt: skip
PROJECT_FILES = {
    "Snakefile": "Snakefile", "workflow": "**/*", "config": "**/*.yaml", "resources": "**/*.csv",
    "profiles": "**/*.yaml", "envs": "*", "LICENSE": "", "CITATION.cff": "",
}  # fmt: skip
"""What a project needs to rebuild a table from its scores, as folder and pattern, or a file."""
CATALOG_PLACE, CATALOG_FILES = "src/crosslign/catalog", ("**/*.yaml", "resources/*/*.csv")
"""Where the entries that came with the library lie in a crate, and which of them."""
PRIVATE = ("local.yaml", "__pycache__")
"""Settings of one machine and left-overs: never part of a crate."""
METADATA = "ro-crate-metadata.json"
RUN = "#run-"
"""What the id of a crate's run begins with."""
PLACE = "Name a new folder, or a new file that ends in .zip"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of every file of the archive, the first that the format knows: equal crates are equal bytes."""


@dataclass(frozen=True)
class _Run:
    """What a crate describes: the project, the table, its chain, and its citation."""

    project: Project
    table: str
    links: list[Link]
    citation: Mapping[str, Any]
    options: Sequence[str]

    @property
    def folder(self) -> str:
        """Where results lie in the crate."""
        return f"results/{self.project.paths.scale}"

    @property
    def lineage(self) -> Mapping[str, Any]:
        """Lineage of the table."""
        return read_lineage(self.project.paths.table(self.table, "csv"))

    @property
    def title(self) -> str:
        """Title of the table."""
        with as_written(lineage_path(self.project.paths.table(self.table, "csv"))):
            return str(self.lineage["recipe"]["title"])

    @property
    def command(self) -> str:
        """What makes the table."""
        return " ".join(["snakemake --cores all", *self.options, "--", f"{self.folder}/tables/{self.table}.md"])


def _citation(root: Path) -> Mapping[str, Any]:
    path = root / "CITATION.cff"
    if not path.is_file():
        raise InputError(
            "no CITATION.cff", where=str(path), do="A crate names its authors and licence: copy the project's CITATION.cff there"
        )
    found: Any = load_yaml(path).content
    if lacking := {"title", "version", "license", "authors"} - (found.keys() if isinstance(found, Mapping) else set()):
        raise InputError("not a citation", where=str(path), why=f"it has no {min(lacking)!r}")
    return dict(found)


def _project_files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file of the project and of the library's catalog, and its place in the crate: that of a checkout."""
    folders = [(root, name, name, pattern) for name, pattern in PROJECT_FILES.items()]
    folders += [(CATALOG, "", CATALOG_PLACE, pattern) for pattern in CATALOG_FILES]
    for above, name, place, pattern in folders:
        found = sorted((above / name).glob(pattern)) if (above / name).is_dir() else [above / name]
        for path in found:
            if path.is_file() and not any(part in PRIVATE for part in path.parts):
                yield path, Path(place, path.relative_to(above / name)).as_posix()


def _score_files(project: Project, table: str) -> list[Path]:
    """Return the score files of a table, each with its resamples: both are made by one job, and paired tests need them."""
    scores = [path for path in table_scores(project, table) if path.suffix == ".json"]
    return [path for score in scores for path in (score, resamples_path(score)) if path == score or path.exists()]


def _times(links: Sequence[Link]) -> tuple[str, str]:
    """Return when the first artefact of a chain was begun and the last one was done."""
    runs = [lineage["run"] for link in links for lineage in link.files.values() if lineage]
    ends = [datetime.fromisoformat(run["started"]) + timedelta(seconds=round(run["wall_s"])) for run in runs]
    return min(run["started"] for run in runs), max(ends).isoformat(timespec="seconds")


def _add(crate: ROCrate, source: Path, place: str, **properties: Any) -> Any:
    if (size := source.stat().st_size) > LARGEST:
        raise InputError("the file is too large for a crate", where=str(source), why=f"{number_of(size, 'byte')}, the limit is {LARGEST:,}")
    found = {"encodingFormat": FORMATS.get(source.suffix, "text/plain"), "contentSize": str(size), **properties}
    return crate.add_file(str(source), place, properties=found)


def _context(crate: ROCrate, identifier: str, kind: str | list[str], **properties: Any) -> Any:
    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))


def _authors(crate: ROCrate, citation: Mapping[str, Any]) -> list[Any]:
    found = []
    for number, author in enumerate(citation["authors"], start=1):
        name = author.get("name") or " ".join(filter(None, (author.get("given-names"), author.get("family-names"))))
        kind = "Organization" if "name" in author else "Person"
        found.append(_context(crate, author.get("orcid") or author.get("website") or f"#author-{number}", kind, name=name))
    return found


def _licences(crate: ROCrate, run: _Run) -> dict[str, Any]:
    """Return an entity for each licence of the data behind the table, by its text."""
    texts = sorted({text for link in run.links for lineage in link.files.values() if lineage for text in lineage["licences"]})
    return {text: _context(crate, f"#licence-{number}", "CreativeWork", name=text) for number, text in enumerate(texts, start=1)}


def _describe_root(crate: ROCrate, run: _Run, authors: list[Any], ended: str) -> None:
    stand_in = " It was built on synthetic data: its scores mean nothing." if run.lineage["stand_in"] else ""
    licence = f"https://spdx.org/licenses/{run.citation['license']}"
    crate.metadata.extra_contexts.append(CONTEXT)
    crate.name = f"{run.table}: {run.title}"
    crate.description = (
        f"The table {run.table} at scale {run.project.paths.scale}, the scores that it depends on, the workflow that made them, and the "
        f"lineage of every artefact behind them.{stand_in}"
    )
    crate.datePublished = ended
    crate.license = _context(crate, licence, "CreativeWork", name=run.citation["license"])
    crate.root_dataset["author"] = authors
    for identifier, (name, version) in PROFILES.items():
        profile = _context(crate, identifier, ["CreativeWork", "Profile"], name=name, version=version)
        crate.root_dataset.append_to("conformsTo", profile)


def _add_workflow(crate: ROCrate, run: _Run, authors: list[Any]) -> tuple[Any, list[Any]]:
    """Add the project's own files; return the workflow, and the configuration and published figures that it read."""
    root = run.project.root
    source = run.project.tables[run.table].get("published_from", run.table)
    figures = printed_path(root / PUBLISHED, source)
    printed = (figures, figures.with_name("errata.csv"))
    read = []
    for path, place in _project_files(root):
        if place != "Snakefile":
            entity = _add(crate, path, place)
            read += [entity] if place.startswith("config/") or path in printed else []
    commit = run.lineage["run"]["commit"]
    facts = {
        "name": run.citation["title"],
        "author": authors,
        "license": crate.license,
        "version": run.citation["version"] + (f" (commit {commit})" if commit else ""),
        "softwareRequirements": [
            _context(crate, f"#{package}", "SoftwareApplication", name=package, version=version)
            for package, version in sorted(run.lineage["versions"].items())
        ],
    }
    workflow = crate.add_workflow(str(root / "Snakefile"), "Snakefile", main=True, lang="snakemake", properties=facts)
    return workflow, read


def _add_lineage(crate: ROCrate, run: _Run, included: set[str]) -> None:
    """Add the lineage file of every artefact of the chain, where `crosslign explain` looks for it.

    That of a folder lies beside its place: a folder there would pass for a trained system.
    """
    results = run.project.paths.results
    for link in run.links:
        for path, lineage in link.files.items():
            if lineage is None:
                continue
            place = f"results/{path.removeprefix('../')}" if path.startswith("../") else f"{run.folder}/{path}"
            sidecar = lineage_path(results / path)
            absent = "" if path in included else "; the artefact itself is not part of the crate"
            about = f"{lineage['artefact']['kind']} made by the rule {lineage['rule']}, sha256 {lineage['artefact']['sha256']}{absent}"
            _add(crate, sidecar, f"{place}.lineage.json", name=f"lineage of {path}", description=about)


def _add_results(crate: ROCrate, run: _Run, licences: Mapping[str, Any]) -> tuple[list[Any], list[Any], set[str]]:
    """Add the table in its formats and its scores; return both, and their paths relative to the results."""
    paths = run.project.paths
    tables = [paths.table(run.table, form) for form in TABLE_FORMATS]
    entities, scores = [], _score_files(run.project, run.table)
    for source in [*tables, *scores]:
        lineage = read_lineage(source)
        facts: dict[str, Any] = {"sha256": lineage["artefact"]["sha256"]}
        if lineage["licences"]:
            facts["license"] = [licences[text] for text in lineage["licences"]]
        if source in tables:
            facts["name"] = f"{run.table}: {run.title} ({source.suffix[1:]})"
        else:
            facts["name"] = f"scores of {source.relative_to(paths.results / 'scores').as_posix()}"
        entities.append(_add(crate, source, f"{run.folder}/{source.relative_to(paths.results).as_posix()}", **facts))
    included = {path.relative_to(paths.results).as_posix() for path in [*tables, *scores]}
    # Without these notes the scores of others would pass for ours in the crate.
    for note in sorted({note for path in included for note in origin_files(paths.results, path)}):
        _add(crate, note, f"{run.folder}/{note.relative_to(paths.results).as_posix()}", name="origin of the scores in this folder")
    return entities[: len(tables)], entities[len(tables) :], included


def _parameter(crate: ROCrate, name: str, kind: str, description: str) -> Any:
    facts = {"additionalType": kind, "name": name, "description": description, "valueRequired": "True"}
    return _context(crate, f"#param-{name}", "FormalParameter", **facts)


def _add_run(crate: ROCrate, run: _Run, workflow: Any, authors: list[Any], read: list[Any], made: list[Any]) -> None:
    """Add the run itself: what it read, what it made, when, and the command."""
    scale = _parameter(crate, "scale", "Text", "name of a file of config/scales: sizes of data, encoders and trainings")
    table = _parameter(crate, "table", "File", "the table, in Markdown; its other formats are made with it")
    workflow["input"], workflow["output"] = [scale], [table]
    value = _context(crate, "#scale", "PropertyValue", name="scale", value=run.project.paths.scale, exampleOfWork=scale)
    made[0]["exampleOfWork"] = table
    started, ended = _times(run.links)
    facts = {
        "name": f"Run of {run.citation['title']} that made {run.table}",
        "description": run.command,
        "startTime": started,
        "endTime": ended,
        "agent": authors,
        "actionStatus": "http://schema.org/CompletedActionStatus",
    }
    action = crate.add_action(workflow, f"{RUN}{run.table}", object=[value, *read], result=made, properties=facts)
    crate.root_dataset["mentions"] = [action]


def _readme(run: _Run) -> str:
    return (
        f"# {run.table}\n\n"
        f"`{run.folder}/tables/{run.table}.md` is the table, `{run.folder}/scores` holds its scores, the other files make "
        "it from them. The lineage of every artefact behind it is at the artefact's path; systems, vectors and text are not included.\n\n"
        f"With crosslign {run.citation['version']} installed, in this folder:\n\n"
        f"    rm {run.folder}/tables/{run.table}.*\n    {run.command}\n    crosslign explain {run.table} ROW COLUMN"
        + "".join(f" {option}" for option in run.options)
        + "\n\n`ro-crate-metadata.json` describes the whole by the Workflow Run Crate profile.\n"
    )


def _crate(run: _Run) -> ROCrate:
    crate = ROCrate()
    authors = _authors(crate, run.citation)
    _describe_root(crate, run, authors, _times(run.links)[1])
    workflow, read = _add_workflow(crate, run, authors)
    tables, scores, included = _add_results(crate, run, _licences(crate, run))
    _add_lineage(crate, run, included)
    _add_run(crate, run, workflow, authors, read, [*tables, *scores])
    crate.add_file(StringIO(_readme(run)), "README.md", properties={"encodingFormat": "text/markdown", "about": crate.root_dataset})
    return crate


def _zip(folder: Path, out: Path) -> None:
    """Pack a folder; equal folders give equal bytes. Results come last: unpacked, they must not be older than the scripts of rules."""
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted(files, key=lambda name: (name.startswith("results/"), name)):
            member = zipfile.ZipInfo(name, EPOCH)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(member, (folder / name).read_bytes())


def _require_place(out: Path) -> None:
    """Refuse a place where something lies that is no crate of ours: what a person or another program put there is never written over.

    Raises:
        InputError: names it.
        OSError: there can be no such place.
    """
    require_replaceable(out)
    zipped = out.suffix == ".zip"
    other, what = None, "the file is not a crate, or holds other files"
    if out.is_dir():
        files = [path for path in sorted(out.rglob("*")) if not path.is_dir()]
        names = [path.relative_to(out).as_posix() for path in files]
        other, what = _not_listed(names, lambda: read_json(out / METADATA)), "this folder has other content"
        if zipped or Path.cwd().is_relative_to(out):
            raise InputError("a crate cannot take the place of this folder", where=str(out), do=PLACE)
    elif os.path.lexists(out):
        other = ""
        with suppress(OSError, zipfile.BadZipFile):
            if zipped:
                with zipfile.ZipFile(out) as archive:
                    other = _not_listed(archive.namelist(), lambda: json.loads(archive.read(METADATA)))
    if other is not None:
        raise InputError(what, where=str(out / other), do=PLACE)


def _not_listed(names: Sequence[str], metadata: Callable[[], Any]) -> str | None:
    """Return which file of a folder or an archive no crate of ours put there, such as a person's notes; None where there is none.

    Other programs write crates, too, and list their users' files in them: ours names its run by its table, and has that.
    """
    listed: set[str] = set()
    with suppress(InputError, KeyError, TypeError, ValueError, RecursionError):
        listed = {unquote(str(entity["@id"])) for entity in metadata()["@graph"]} if METADATA in names else set()
    tables = [name.removeprefix(RUN) for name in listed if name.startswith(RUN)]
    ours = any(name.startswith("results/") and name.endswith(f"/tables/{table}.md") for table in tables for name in listed)
    return next((name for name in names if not ours or name not in listed), None)


def write_crate(project: Project, table: str, out: Path, options: Sequence[str] = ()) -> int:
    """Write a finished table as a Workflow Run RO-Crate; return how many files it holds.

    Args:
        project: the project as configured.
        table: id of the table.
        out: a file that ends in `.zip`, or a folder, or a link to one; a crate that is there is replaced.
        options: what Snakemake was given beside the target: `--configfile`, `--config`.

    Raises:
        InputError: no such table, or it is not built, or a file differs from its lineage; no CITATION.cff; at `out` lies something else
            than a crate, or can lie none.
    """
    if table not in project.tables:
        raise InputError(f"unknown table {table!r}", where="crosslign crate", why=nearest(table, list(project.tables)))
    files = [project.paths.table(table, form) for form in TABLE_FORMATS]
    if absent := [path for path in [*files, *_score_files(project, table)] if not (path.is_file() and lineage_path(path).exists())]:
        command = " ".join(["snakemake --cores all", *options, "--", table])
        do = f"Run {command}; scores of another group need the lineage files beside them"
        raise InputError("this table is not built, or its scores have no lineage", where=str(absent[0]), do=do)
    try:
        out = Path(os.path.realpath(out))
        _require_place(out)
        require_whole(project.paths.results, [*files, *_score_files(project, table)])
        return _write(project, table, files, out, options)
    except FileNotFoundError as error:
        raise InputError("a file disappeared while the crate was packed", where=str(error.filename), do=AGAIN) from error
    except OSError as error:  # such as a name that is too long
        raise InputError("the crate cannot be written", where=str(error.filename or out), why=error.strerror or "", do=PLACE) from error


def _write(project: Project, table: str, files: Sequence[Path], out: Path, options: Sequence[str]) -> int:
    """Write the crate of a table whose files are there; return how many files it holds."""
    results = project.paths.results
    links = chain(results, [path.relative_to(results).as_posix() for path in [*files, *_score_files(project, table)]])
    run = _Run(project, table, links, _citation(project.root), options)
    if out.suffix != ".zip":
        with atomic_folder(out) as folder:
            _crate(run).write(folder)
            return sum(path.is_file() for path in folder.rglob("*"))
    with atomic_path(out) as temporary, temporary_folder("crosslign-crate-") as name:
        _crate(run).write(name)
        _zip(Path(name), temporary)
        return sum(path.is_file() for path in Path(name).rglob("*"))
