"""Lineage files of all ancestors of given artefacts: the inputs of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from crosslign.config import graph
from crosslign.config.cells import SYSTEMS, counted_rows, origins_at
from crosslign.config.graph import Node
from crosslign.config.project import Project
from crosslign.entries.catalog import Corpus, Encoder
from crosslign.files.lineage import sidecar_of
from crosslign.paths import COUNTS, EVALUATION_FILES

Models = Callable[[str], Iterable[str]]


def _sources(project: Project, entry: Corpus | Encoder) -> Iterator[Path]:
    """Yield downloads that an entry reads, and the sentences that synthetic data of them are written from."""
    yield from graph.own_files(project, entry).values()
    yield from (path for _, path in graph.model_files(project, entry).values())
    if project.stand_in and "source" in entry and "stand_in" in project.sources[entry["source"]]:
        yield from graph.source_paths(project, "written").values()


def _lineage_of(project: Project, node: Node, models: Models) -> Iterator[Path]:
    """Yield the lineage of a node and of its downloads; of encoders, runs and translation models, which hold theirs, the folder."""
    kind, name = node
    corpus = project.corpora.get(name) if kind == "corpus" else None
    entry = project.encoders[name] if kind == "encoder" else corpus
    yield from map(sidecar_of, _sources(project, entry) if entry else ())
    if corpus and corpus["kind"] == "evaluation":
        yield from (sidecar_of(project.paths.evaluation(name, part)) for part in EVALUATION_FILES)
    elif kind == "corpus":
        yield sidecar_of(graph.corpus_path(project, name))
        yield from map(project.paths.hub_model, models(name) if name in project.views else ())
    elif kind == "examples":
        yield sidecar_of(project.paths.examples(name))
    elif kind == "choice":
        yield sidecar_of(project.paths.choice(name))
    elif kind in ("encoder", "run"):
        yield project.paths.encoder(name) if kind == "encoder" else project.paths.system(name)


def _behind_score(project: Project, score: Path) -> Iterator[Path | Node]:
    """Yield the lineage of a score and of the vectors that it depends on, and what these are of; of another group's its own, if there."""
    place = score.relative_to(project.paths.results)
    if origins_at(project, score.parent):
        yield from filter(Path.exists, [sidecar_of(score)])
        return
    yield sidecar_of(score)
    run, *rest = place.with_suffix("").parts[1:]
    if run == COUNTS:
        kinds = {"corpora": "corpus", "examples": "examples", SYSTEMS: "run"}
        yield from ((kinds[kind], name) for kind, name in counted_rows(project, rest[0]))
        return
    yield "run", run
    yield "task", rest[-1]
    yield from (sidecar_of(entry["matrix"]) for entry in graph.score_inputs(project, run, *rest).values())


def lineage_behind(project: Project, scores: Iterable[Path], models: Models) -> list[Path]:
    """Return the lineage of score files and of all that they are made of: files, and folders that hold theirs; sorted.

    Args:
        project: the configuration.
        scores: score files; others, such as their resamples, have the same ancestors and are passed over.
        models: gives the folders of the translation models that a view needs.
    """
    behind = [one for score in scores if score.suffix == ".json" for one in _behind_score(project, score)]
    found = {one for one in behind if isinstance(one, Path)}
    for node in graph.ancestors(project, [one for one in behind if not isinstance(one, Path)]):
        found.update(_lineage_of(project, node, models))
    return sorted(found)
