"""Corpora and base encoders behind a system, a training set, an evaluation or a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslign.config.catalog import file_names, local_file, source_kind
from crosslign.config.graph import Node, ancestors, model_files, own_files, source_file
from crosslign.config.project import Project, remembered
from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError
from crosslign.files.home import with_home
from crosslign.files.mirrors import mirrored
from crosslign.files.own import model_files as files_of_model


@dataclass(frozen=True)
class Uses:
    """Corpora and encoders behind entries, by id, in the order in which the graph is followed."""

    project: Project
    corpora: Sequence[str]
    encoders: Sequence[str]

    def files(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield (source, file, its user, access) of every file that these corpora and encoders read."""
        for users, entries in ((self.corpora, self.project.corpora), (self.encoders, self.project.encoders)):
            for user in users:
                entry = entries[user]
                for file in own_files(self.project, entry):
                    yield entry["source"], file, user, str(entry.get("access", "open"))
                yield from ((model, file, user, "open") for model, (file, _) in model_files(self.project, entry).items())


def uses(project: Project, nodes: Iterable[Node]) -> Uses:
    """Return what is behind some nodes of the graph."""
    behind = ancestors(project, nodes)
    corpora = [name for kind, name in behind if kind == "corpus" and name in project.corpora]
    return Uses(project, corpora, [name for kind, name in behind if kind == "encoder"])


def file_state(project: Project, name: str, file: AskedFile, access: str) -> str:
    """Return where a file of a source is to be had.

    Args:
        project: the configuration.
        name: id of the source.
        file: its entry of the file.
        access: that of the corpus that reads it: `open`, `manual` or `withdrawn`.

    Returns:
        `synthetic` the scale writes it; `here` it lies where it was fetched to, or in the source's own folder; `mirror` a mirror has it;
        `fetch` it can be downloaded; `by hand` a person must put it there; `withdrawn` nobody gives it any more.
    """
    source = project.sources[name]
    if project.stand_in and "stand_in" in source:
        return "synthetic"
    if project.paths.download(name, file["name"]).is_file():
        return "here"
    if mirrored(name, file, project.mirrors):
        return "mirror"
    local = source_kind(source) == "local"
    if local and local_file(source, file).is_file():
        return "here"
    if access == "withdrawn":
        return "withdrawn"
    return "by hand" if local or access == "manual" else "fetch"


def require_own_files(project: Project, wanted: Iterable[tuple[str, str]]) -> None:
    """Check that files of the user's own (`local:`) are there, before anything is fetched.

    Args:
        project: the configuration.
        wanted: (source, file) of the files that are going to be fetched; those of other sources are passed over.

    Raises:
        InputError: names the first source of which files are not there, its key, and where each was looked for.
    """
    absent: dict[str, list[Path]] = {}
    for name, file_name in sorted(wanted):
        source, file = project.sources[name], source_file(project, name, file_name)
        if source_kind(source) == "local" and file_state(project, name, file, "open") == "by hand":
            absent.setdefault(name, []).append(local_file(source, file))
    for name, paths in absent.items():
        what = "a file of your own is missing" if len(paths) == 1 else f"{len(paths)} files of your own are missing"
        do = "Put it there, or fix the path; a corpus with `access: manual` is left out until its files are there"
        raise InputError(what, where=f"config/corpora.yaml: sources.{name}.local", why=", ".join(map(str, paths)), do=do)


def own_path(project: Project, encoder: str) -> Path:
    """Return where the user's own encoder (`path:`) lies."""
    return with_home(project.encoders[encoder]["path"])


def own_encoder(project: Project, encoder: str) -> list[Path]:
    """Return the files that an encoder of the user's own (`path:`) is made of, as they lie there now; none of any other encoder."""
    entry = project.encoders[encoder]
    return files_of_model(own_path(project, encoder), entry.get("format", "transformers_folder")) if "path" in entry else []


def copied_file(project: Project, name: str, file_name: str) -> list[Path]:
    """Return the user's own file that a `local` source copies, so that an edited one is copied again; once copied, it may go."""
    source, file = project.sources[name], source_file(project, name, file_name)
    own = local_file(source, file) if source_kind(source) == "local" else None
    return [own] if own and (own.is_file() or project.paths.download(name, file_name).is_file()) else []


def is_there(project: Project, encoder: str) -> bool:
    """Tell whether an encoder can be had: one of the user's own lies at its `path:`, or was prepared from there; others are fetched."""
    own = "path" in project.encoders[encoder]
    return not own or own_path(project, encoder).exists() or project.paths.encoder(encoder).exists()


@remembered
def why_missing(project: Project, kind: str, name: str) -> str:
    """Return which data behind a `task`, `system`, `corpus`, `examples` or `encoder` cannot be had, and why; else an empty string.

    Looked for once in a process: what a run is made of must not change while its graph is built.
    """
    return _said(uses(project, [(kind, name)]))


def all_missing(project: Project) -> list[str]:
    """Return why data cannot be had, each reason once, as far as it was asked for."""
    said = "; ".join(filter(None, project.memory.get("why_missing", {}).values()))
    return list(filter(None, dict.fromkeys(said.split("; "))))


def _said(uses: Uses) -> str:
    """Say which sources of the gathered corpora cannot be had, withdrawn ones first, and which encoders of this machine are not there."""
    project, withdrawn = uses.project, dict[str, None]()
    wanted: dict[str, dict[str, None]] = {}
    for entry in map(project.corpora.__getitem__, uses.corpora):
        if (access := entry.get("access", "open")) == "open":
            continue
        source = entry["source"]
        for name in file_names(project.sources[source], entry):
            state = file_state(project, source, source_file(project, source, name), access)
            withdrawn |= {source: None} if state == "withdrawn" else {}
            if state == "by hand":
                wanted.setdefault(source, {})[name] = None
    said = [f"{source} was withdrawn by its provider" for source in withdrawn]
    for source, names in wanted.items():
        folder = project.sources[source].get("local", project.paths.downloads / source)
        said.append(f"{source} must be fetched by hand: put {', '.join(names)} into {folder}")
    said += [f"the encoder {name} is not there: {own_path(project, name)}" for name in uses.encoders if not is_there(project, name)]
    return "; ".join(said)
