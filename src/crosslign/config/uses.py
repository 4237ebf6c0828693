"""Corpora and base encoders behind a system, a training set, an evaluation or a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.config.catalog import file_names, local_file, source_kind
from crosslign.config.graph import source_file
from crosslign.config.project import Project, filter_corpora, filter_models, view_corpora
from crosslign.config.resolve import encoder_at_scale, entry_of, is_untrained
from crosslign.errors import InputError
from crosslign.files.home import with_home
from crosslign.files.mirrors import mirrored


@dataclass
class Uses:
    """Corpora and encoders, gathered by following the configuration upwards; each thing is visited once.

    Attributes:
        project: the configuration.
        corpora, encoders: ids, in the order in which they were met.
        seen: what was followed already.
    """

    project: Project
    corpora: dict[str, None] = field(default_factory=dict)
    encoders: dict[str, None] = field(default_factory=dict)
    seen: set[tuple[str, str]] = field(default_factory=set)

    def task(self, name: str) -> None:
        """Add the evaluation corpora of a task."""
        for corpus in self.project.tasks[name]["texts"].values():
            self.corpus(corpus)

    def system(self, name: str) -> None:
        """Add what a system (`a+b` with fine-tunes) starts from, is trained on and is selected by."""
        if ("system", name) in self.seen:
            return
        self.seen.add(("system", name))
        if is_untrained(self.project, name):
            self.encoder(encoder_at_scale(self.project, name))
            return
        entry = entry_of(self.project, name)
        base = entry["base"]
        for encoder in [*([base["encoder"]] if "encoder" in base else []), *base.get("encoders", {}).values()]:
            self.encoder(encoder_at_scale(self.project, encoder))
        if "system" in base:
            self.system(base["system"])
        for term in entry["terms"]:
            self.examples(term["examples"])
        for select in entry.get("select", {}).values():
            self.task(select["task"])

    def encoder(self, name: str) -> None:
        """Add a base encoder, and the corpora that its vocabulary is pruned to."""
        self.encoders[name] = None
        for corpus in self.project.encoders[name].get("prune", {}).get("corpora", []):
            self.corpus(corpus)

    def examples(self, name: str) -> None:
        """Add the corpora of a training set, and those that it is kept clear of."""
        entry = self.project.examples[name]
        for corpus in [*entry.get("from", []), *entry.get("decontaminate", [])]:
            self.corpus(corpus)
        for other in entry.get("of", []):
            self.examples(other)

    def corpus(self, name: str) -> None:
        """Add a corpus, or those of a view, with what it is derived from or filtered against."""
        if ("corpus", name) in self.seen:
            return
        self.seen.add(("corpus", name))
        if name in self.project.views:
            for corpus in view_corpora(self.project.views[name]):
                self.corpus(corpus)
            return
        entry = self.project.corpora[name]
        self.corpora[name] = None
        for corpus in [*entry.get("from", []), *entry.get("of", []), *filter_corpora(entry)]:
            self.corpus(corpus)

    def files(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield (source, file, its user, access) of every file that the gathered corpora and encoders read."""
        for users, entries in ((self.corpora, self.project.corpora), (self.encoders, self.project.encoders)):
            for user in users:
                entry: Mapping[str, Any] = entries[user]
                if "source" in entry:
                    for file in file_names(self.project.sources[entry["source"]], entry):
                        yield entry["source"], file, user, entry.get("access", "open")
                for model in filter_models(entry, self.project.sources):
                    yield model, self.project.sources[model]["files"][0]["name"], user, "open"


def file_state(project: Project, name: str, file: Mapping[str, Any], access: str) -> str:
    """Return where a file of a source is to be had.

    Args:
        project: the configuration.
        name: id of the source.
        file: its entry of the file.
        access: that of the corpus that reads it: `open`, `manual` or `withdrawn`.

    Returns:
        `stand-in` the scale writes it; `here` it lies where it was fetched to, or in the source's own folder; `mirror` a mirror has it;
        `fetch` it can be downloaded; `by hand` a person must put it there; `withdrawn` nobody gives it any more.
    """
    source = project.sources[name]
    if project.stand_in and "stand_in" in source:
        return "stand-in"
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
        do = "Put it there or mend the path; a corpus of `access: manual` is left out until its files are there"
        raise InputError(what, where=f"config/corpora.yaml: sources.{name}.local", why=", ".join(map(str, paths)), do=do)


def own_path(project: Project, encoder: str) -> Path:
    """Return where the user's own encoder (`path:`) lies."""
    return with_home(project.encoders[encoder]["path"])


def is_there(project: Project, encoder: str) -> bool:
    """Tell whether an encoder can be had: one of the user's own lies at its `path:`, or was prepared from there; others are fetched."""
    own = "path" in project.encoders[encoder]
    return not own or own_path(project, encoder).exists() or project.paths.encoder(encoder).exists()


def why_missing(project: Project, kind: str, name: str) -> str:
    """Return which data behind a `task`, `system`, `corpus` or `examples` cannot be had, and why; else an empty string.

    Looked for once in a process: what a run is made of must not change while its graph is built.
    """
    if (kind, name) not in project.missing:
        uses = Uses(project)
        getattr(uses, kind)(name)
        project.missing[kind, name] = _said(uses)
    return project.missing[kind, name]


def _said(uses: Uses) -> str:
    """Say which sources of the gathered corpora cannot be had, withdrawn ones first, and which encoders of this machine are not there."""
    project, withdrawn = uses.project, dict[str, None]()
    wanted: dict[str, dict[str, None]] = {}
    for entry in map(project.corpora.__getitem__, uses.corpora):
        if (access := entry.get("access", "open")) == "open":
            continue
        source = entry["source"]
        files = {file["name"]: file for file in project.sources[source]["files"]}
        for name in file_names(project.sources[source], entry):
            state = file_state(project, source, files[name], access)
            withdrawn |= {source: None} if state == "withdrawn" else {}
            if state == "by hand":
                wanted.setdefault(source, {})[name] = None
    said = [f"{source} was withdrawn by its provider" for source in withdrawn]
    for source, names in wanted.items():
        folder = project.sources[source].get("local", project.paths.downloads / source)
        said.append(f"{source} must be fetched by hand: put {', '.join(names)} into {folder}")
    said += [f"the encoder {name} is not there: {own_path(project, name)}" for name in uses.encoders if not is_there(project, name)]
    return "; ".join(said)
