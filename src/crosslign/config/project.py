"""The project as configured: settings, scale, catalogs and the entries of its papers."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from crosslign.entries.catalog import Corpus, Encoder, Readout, Scale, Source, Task
from crosslign.entries.papers import Claim, Figure, Recipe, Settings, Table, TrainingSet, View
from crosslign.paths import Paths

Given = ParamSpec("Given")
Found = TypeVar("Found")
SECTIONS = ("views", "examples", "systems", "finetunes", "tables", "figures", "claims")
"""Sections of a paper's file; an id stands in one file only."""


def translator_of(view: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a view's translator by its name; empty of a view without one."""
    found: Mapping[str, Any] = view.get("translator", {})
    return found


def view_corpora(entry: Mapping[str, Any]) -> list[str]:
    """Return the ids of the corpora, dictionaries and provided translations that a view's entry names."""
    provided = [corpus for options in translator_of(entry).values() for corpus in (options or {}).get("corpora", [])]
    return [*entry["from"], *entry.get("dictionaries", {}).values(), *provided]


def filter_corpora(entry: Corpus) -> list[str]:
    """Return the ids of the corpora that a corpus is filtered against."""
    return [corpus for step in entry.get("filters", []) for options in step.values() for corpus in (options or {}).get("corpora", [])]


def filter_models(entry: Mapping[str, Any], sources: Container[str]) -> list[str]:
    """Return the ids of the sources that a corpus' filters take their models from; a model named by its path is of none."""
    return [model for model in _models_named(entry) if model in sources]


def own_models(entry: Mapping[str, Any], sources: Container[str]) -> list[Path]:
    """Return the files of the user's own that a corpus' filters take their models from, as far as they are there."""
    return [Path(model) for model in _models_named(entry) if model not in sources and Path(model).is_file()]


def _models_named(entry: Mapping[str, Any]) -> list[str]:
    return [str((options or {}).get("model")) for step in entry.get("filters", []) for options in step.values()]


def without_models(entry: Mapping[str, Any], sources: Container[str]) -> Mapping[str, Any]:
    """Return a corpus whose filters do without the models that would be fetched for them: those that come with their packages decide."""
    if not filter_models(entry, sources):
        return entry

    def own(options: Mapping[str, Any] | None) -> dict[str, Any]:
        given = dict(options or {})
        return {key: value for key, value in given.items() if not key.startswith("model")} if given.get("model") in sources else given

    return {**entry, "filters": [{rule: own(options) for rule, options in step.items()} for step in entry["filters"]]}


def members_named(average: str | Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Return the subsets and averages that an average of a task names, to average over or to leave out; none for `all`."""
    return [] if average == "all" else list(average["all_but"] if isinstance(average, Mapping) else average)


@dataclass(frozen=True)
class Project:
    """All settings of one run.

    Attributes:
        root: folder that holds `config/` and `workflow/`.
        settings: content of config.yaml with its defaults.
        scale: content of the scale's file.
        sources, corpora, encoders, readouts, tasks: catalogs by id.
        views, examples, systems, finetunes, tables, figures, claims: entries of all papers of the run, by id.
        paper_of: which paper a system, fine-tune, table, figure or claim stands in.
        paths: where artefacts lie.
        mirrors: folders looked in before any download.
        replaced: entries of the catalog that the project has others for, such as `tasks.tatoeba`, and the file of these.
        added: entries that the project lays beside those of the catalog, in the same way.
        pair_files: files of pairs of languages, as messages name them, by what `paper_of` calls them.
        plugins: what a run says of each plugin: its file, what it implements, in which version.
    """

    root: Path
    settings: Settings
    scale: Scale
    sources: Mapping[str, Source]
    corpora: Mapping[str, Corpus]
    encoders: Mapping[str, Encoder]
    readouts: Mapping[str, Readout]
    tasks: Mapping[str, Task]
    views: Mapping[str, View]
    examples: Mapping[str, TrainingSet]
    systems: Mapping[str, Recipe]
    finetunes: Mapping[str, Recipe]
    tables: Mapping[str, Table]
    figures: Mapping[str, Figure]
    claims: Mapping[str, Claim]
    paper_of: Mapping[str, str]
    paths: Paths
    mirrors: tuple[Path, ...]
    replaced: Mapping[str, Path]
    plugins: tuple[str, ...] = ()
    added: Mapping[str, Path] = field(default_factory=dict)
    pair_files: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def memory(self) -> dict[str, dict[Hashable, Any]]:
        """What functions that are `remembered` returned, by their name and arguments."""
        return {}

    @cached_property
    def evaluated_alone(self) -> frozenset[str]:
        """Corpora that evaluation corpora are made of, and nothing else."""
        trained = {name for entry in self.examples.values() for name in entry.get("from", [])}
        trained |= {name for entry in self.views.values() for name in view_corpora(entry)}
        read: dict[bool, set[str]] = {True: set(), False: trained}
        for entry in self.corpora.values():
            read[entry["kind"] == "evaluation"].update([*entry.get("from", []), *entry.get("of", [])])
        return frozenset(read[True] - read[False])

    def file_of(self, name: str) -> str:
        """Return the file of a paper or of a pair of languages that an entry stands in, as messages name it."""
        paper = self.paper_of[name]
        return self.pair_files.get(paper, f"config/papers/{paper}.yaml")

    @property
    def gpus(self) -> int:
        """GPUs of each training and encoding job: those of the settings, else those of the scale."""
        return int(self.settings.get("gpus", self.scale.get("gpus", 0)))

    @property
    def kernels(self) -> str:
        """Whether trainings and encodings on a GPU use the project's own kernels: `off`, `auto` or `on`."""
        given = self.settings.get("kernels", "auto")
        bare = {False: "off", True: "on"}  # what YAML 1.1, on the command line, makes of the words
        return given if isinstance(given, str) else bare[given]

    @property
    def stand_in(self) -> bool:
        """Whether this scale writes its own sources."""
        return bool(self.scale["sources"] == "stand_in")


def remembered(function: Callable[Concatenate[Project, Given], Found]) -> Callable[Concatenate[Project, Given], Found]:
    """Make a function of a project compute each answer once; whoever gets one must not change it."""

    @wraps(function)
    def answer(project: Project, /, *args: Given.args, **named: Given.kwargs) -> Found:
        known, key = project.memory.setdefault(function.__qualname__, {}), (args, *named.items())
        if key not in known:
            known[key] = function(project, *args, **named)
        found: Found = known[key]
        return found

    return answer
