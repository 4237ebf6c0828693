"""Lineage files of all ancestors of given artefacts: the inputs of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from crosslign.config import graph
from crosslign.config.cells import SYSTEMS, counted_rows
from crosslign.config.project import Project
from crosslign.config.resolve import is_untrained, run_recipe
from crosslign.files.lineage import sidecar_of
from crosslign.files.rows import EVALUATION_FILES
from crosslign.paths import COUNTS, origin_files


class Ancestors:
    """Collects the lineage of artefacts and of all that these are made of.

    Args:
        project: the configuration.
        models: gives the folders of the translation models that a view needs.

    Attributes:
        found: lineage files; of encoders, trained runs and translation models, whose lineage lies inside, their folders.
    """

    def __init__(self, project: Project, models: Callable[[str], Iterable[str]]) -> None:
        self.project, self.paths, self._models = project, project.paths, models
        self.found: set[Path] = set()
        self._seen: set[tuple[str, str]] = set()

    def _new(self, kind: str, name: str) -> bool:
        """Tell whether an artefact has not been looked at yet."""
        new = (kind, name) not in self._seen
        self._seen.add((kind, name))
        return new

    def source(self, source: str, files: Iterable[Path]) -> None:
        """Add downloads of a source, and the sentences that synthetic data of them are written from."""
        self.found.update(map(sidecar_of, files))
        if self.project.stand_in and "stand_in" in self.project.sources[source]:
            self.found.update(map(sidecar_of, graph.source_paths(self.project, "written").values()))

    def corpus(self, name: str) -> None:
        """Add a corpus, an evaluation corpus, or a view."""
        if not self._new("corpus", name):
            return
        if name in self.project.views:
            self.found.add(sidecar_of(self.paths.view(name)))
            self.found.update(map(self.paths.hub_model, self._models(name)))
            others = graph.view_inputs(self.project, name)
        else:
            evaluation = self.project.corpora[name]["kind"] == "evaluation"
            parts = [self.paths.evaluation(name, part) for part in EVALUATION_FILES]
            self.found.update(map(sidecar_of, parts if evaluation else [graph.corpus_path(self.project, name)]))
            if files := graph.corpus_files(self.project, name):
                self.source(self.project.corpora[name]["source"], files.values())
            others = {**graph.corpus_references(self.project, name), **dict.fromkeys(self.project.corpora[name].get("of", []), Path())}
        for other in others:
            self.corpus(other)

    def examples(self, name: str) -> None:
        """Add a training set."""
        if not self._new("examples", name):
            return
        self.found.add(sidecar_of(self.paths.examples(name)))
        inputs = graph.examples_inputs(self.project, name)
        for corpus in (*inputs["corpora"], *inputs["evaluations"]):
            self.corpus(corpus)
        for other in inputs["others"]:
            self.examples(other)

    def encoder(self, name: str) -> None:
        """Add a prepared base encoder."""
        if not self._new("encoder", name):
            return
        self.found.add(self.paths.encoder(name))
        entry = self.project.encoders[name]
        if "source" in entry:
            self.source(entry["source"], graph.source_paths(self.project, entry["source"]).values())
        for corpus in entry.get("prune", {}).get("corpora", []):
            self.corpus(corpus)

    def run(self, run: str) -> None:
        """Add a run, trained or not, and those that it starts from."""
        if not self._new("run", run):
            return
        if is_untrained(self.project, run):
            self.encoder(graph.run_folder(self.project, run).name)
            return
        recipe = run_recipe(self.project, run)
        self.found.add(self.paths.system(run))
        for term in recipe["terms"]:
            self.examples(term["examples"])
        for corpus in graph.selection_sets(self.project, recipe):
            self.corpus(corpus)
        if "run" in recipe["base"]:
            self.run(recipe["base"]["run"])
        for encoder in recipe["base"].get("members", {}).values():
            self.encoder(encoder)

    def score(self, score: Path) -> None:
        """Add a score file: what it counts, or the vectors that it depends on; of another group's its own lineage, if there."""
        place = score.relative_to(self.paths.results)
        if origin_files(self.paths.results, place.as_posix()):
            self.found.update(filter(Path.exists, [sidecar_of(score)]))
            return
        self.found.add(sidecar_of(score))
        run, *rest = place.with_suffix("").parts[1:]
        if run == COUNTS:
            for kind, name in counted_rows(self.project, rest[0]):
                {"corpora": self.corpus, "examples": self.examples, SYSTEMS: self.run}[kind](name)
            return
        self.run(run)
        for role, entry in graph.score_inputs(self.project, run, *rest).items():
            self.found.add(sidecar_of(entry["matrix"]))
            self.corpus(self.project.tasks[rest[-1]]["texts"][role])


def lineage_behind(project: Project, scores: Iterable[Path], models: Callable[[str], Iterable[str]]) -> list[Path]:
    """Return the lineage of score files and of all that they are made of: files, and folders that hold theirs; sorted.

    Args:
        project: the configuration.
        scores: score files; others, such as their resamples, have the same ancestors and are passed over.
        models: gives the folders of the translation models that a view needs.
    """
    ancestors = Ancestors(project, models)
    for score in scores:
        if score.suffix == ".json":
            ancestors.score(score)
    return sorted(ancestors.found)
