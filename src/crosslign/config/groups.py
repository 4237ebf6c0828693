"""Which short jobs go to a scheduler together: those of one rule that are ready at about the same time, as many as their sums allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from crosslign.config.cells import SYSTEMS, counted_rows, table_scores
from crosslign.config.figures import figure_inputs
from crosslign.config.graph import Node, ancestors, examples_inputs, made_of, score_inputs
from crosslign.config.loads import large_sets
from crosslign.config.project import Project
from crosslign.config.resolve import run_recipe
from crosslign.config.resources import Need, job_need, most, search_threads
from crosslign.config.targets import covered
from crosslign.config.tokenised import copies, key_of

GROUPED = frozenset(("corpora", "evaluations", "examples", "tokenised", "embeds", "large_embeds", "scores", "large_scores"))
"""Names of the groups, which `group-components` of a profile gives their sizes."""
COUNTED = {"corpora": "corpus", "examples": "examples", SYSTEMS: "run"}
Key = tuple[str, ...]
"""What names a job within its rule: the values of its wildcards."""


@dataclass(frozen=True)
class _Job:
    """A job with what it asks for, and how many jobs of its rule it stands behind."""

    key: Key
    need: Need
    level: int = 0


def _levels(behind: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Return for each name how many others it stands behind: a group of one level alone waits for no group that waits for it."""
    found: dict[str, int] = {}

    def level(name: str) -> int:
        if name not in found:
            found[name] = 1 + max((level(other) for other in behind[name] if other in behind), default=-1)
        return found[name]

    for name in behind:
        level(name)
    return found


class Groups:
    """The groups of a project's short jobs.

    Args:
        project: the configuration.
        sizes: most jobs of a group, by its name; what is not named is not grouped.
    """

    def __init__(self, project: Project, sizes: Mapping[str, int]) -> None:
        self._project, self._sizes = project, sizes
        self._found: dict[str, dict[Key, int]] = {}

    def group(self, name: str, key: Key) -> str | None:
        """Return the group of a job; None where it goes alone.

        Args:
            name: of its groups, one of `GROUPED`.
            key: the values of the job's wildcards.
        """
        if self._sizes.get(name, 1) < 2:
            return None
        if name not in self._found:
            self._found[name] = self._numbered(name)
        number = self._found[name].get(key)
        return None if number is None else f"{name}-{number}"

    def _numbered(self, name: str) -> dict[Key, int]:
        """Return the number of each job's group: neighbours in the order of the jobs' names, which are ready together."""
        jobs: dict[str, Callable[[], Iterator[_Job]]] = {
            "corpora": lambda: self._corpora("build_corpus", evaluations=False),
            "evaluations": lambda: self._corpora("build_evaluation", evaluations=True),
            "examples": self._examples,
            "embeds": lambda: self._embeds(large=False),
            "large_embeds": lambda: self._embeds(large=True),
            "tokenised": self._tokenised,
            "scores": lambda: self._scores(large=False),
            "large_scores": lambda: self._scores(large=True),
        }
        longest = most(self._project)[1] // 2  # a second try asks for as much again
        found: dict[Key, int] = {}
        number = members = minutes = level = 0
        for job in jobs[name]():
            if members and (members == self._sizes[name] or minutes + job.need.runtime > longest or job.level != level):
                number, members, minutes = number + 1, 0, 0
            # How many run at once is Snakemake's to say, by their memory and devices: their times are counted one after another.
            members, level, minutes = members + 1, job.level, minutes + job.need.runtime
            found[job.key] = number
        return found

    def _need(self, rule: str, **wildcards: str) -> Need:
        return job_need(self._project, rule, wildcards, 1)

    @cached_property
    def _drawn(self) -> set[Path]:
        """Files that the figures of this run show."""
        return {path for figure in covered(self._project)[1] for path in figure_inputs(self._project, figure)["declared"]}

    @cached_property
    def _behind(self) -> dict[Node, None]:
        """All that is behind the scores and counts of this run: no group of it waits for what else the catalog has."""
        nodes = dict.fromkeys(node for run, _, _, task in self._keys for node in (("run", run), ("task", task)))
        counted = (key for table in covered(self._project)[0] for key in counted_rows(self._project, table))
        nodes |= dict.fromkeys((COUNTED[kind], name) for kind, name in counted)
        return ancestors(self._project, nodes)

    @cached_property
    def _keys(self) -> list[Key]:
        """Run, checkpoint, readout and task of every score that this run covers, by run."""
        tables = covered(self._project)[0]
        found = {score for table in tables for score in table_scores(self._project, table)}.union(self._drawn)
        below = self._project.paths.results / "scores"
        parts = (path.relative_to(below).with_suffix("").parts for path in sorted(found) if Path(path).suffix == ".json")
        return [part for part in parts if len(part) == 4 and part[3] in self._project.tasks]

    def _scores(self, *, large: bool) -> Iterator[_Job]:
        for run, checkpoint, readout, task in self._keys:
            if (search_threads(self._project, task) > 1) == large:
                need = self._need("score", run=run, checkpoint=checkpoint, readout=readout, task=task)
                yield _Job((run, checkpoint, readout, task), need)

    def _embeds(self, *, large: bool) -> Iterator[_Job]:
        sets, below = large_sets(self._project), self._project.paths.results / "embeddings"
        found = {one["matrix"] for key in self._keys for one in score_inputs(self._project, *key).values()}
        found |= {path for path in self._drawn if path.suffix == ".npy"}
        for path in sorted(found):
            run, checkpoint, readout, text_set = key = path.relative_to(below).with_suffix("").parts
            if (text_set in sets) == large:
                rule = "embed_large" if large else "embed"
                yield _Job(key, self._need(rule, run=run, checkpoint=checkpoint, readout=readout, text_set=text_set))

    def _by_level(self, rule: str, behind: Mapping[str, Iterable[str]], kind: str) -> Iterator[_Job]:
        """Yield jobs by level, then by the time that they ask for: what takes long is not a reason for others to wait."""
        levels = _levels({name: others for name, others in behind.items() if (kind, name) in self._behind})
        jobs = [_Job((name,), self._need(rule, **{kind: name}), level) for name, level in levels.items()]
        return iter(sorted(jobs, key=lambda job: (job.level, job.need.runtime, job.key)))

    def _corpora(self, rule: str, *, evaluations: bool) -> Iterator[_Job]:
        names = [name for name, entry in self._project.corpora.items() if (entry["kind"] == "evaluation") == evaluations]
        return self._by_level(rule, {name: [other for _, other in made_of(self._project, "corpus", name)] for name in names}, "corpus")

    def _examples(self) -> Iterator[_Job]:
        behind = {name: list(examples_inputs(self._project, name)["others"]) for name in self._project.examples}
        return self._by_level("build_examples", behind, "examples")

    def _tokenised(self) -> Iterator[_Job]:
        recipes = [run_recipe(self._project, name) for kind, name in self._behind if kind == "run"]
        found = {(name, key_of(copy)) for recipe in recipes for name, copy in copies(self._project, recipe).items()}
        jobs = [_Job(copy, self._need("tokenise", examples=copy[0], key=copy[1])) for copy in found]
        return iter(sorted(jobs, key=lambda job: (job.need.runtime, job.key)))
