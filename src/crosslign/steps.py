"""Stages one after the other in this process, without the workflow's engine; what many callers share lies in the user's cache folder.

`python -m crosslign.steps NAME...` makes base encoders and corpora of the catalog there: a job sets up its process for itself alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.config import graph
from crosslign.config.catalog import hints_text
from crosslign.config.load import project_in
from crosslign.config.project import Project, own_models
from crosslign.config.resources import STAND_IN_RULE
from crosslign.config.uses import copied_file, own_encoder
from crosslign.config.versions import job_versions
from crosslign.entries.catalog import Corpus, Encoder
from crosslign.errors import CrosslignError, InputError, NetworkError, ResourceError
from crosslign.files.home import cache_folder
from crosslign.jobs.alone import only_one
from crosslign.jobs.frame import perform
from crosslign.jobs.job import all_paths, listed, named_inputs
from crosslign.paths import EVALUATION_FILES
from crosslign.provenance.reruns import Asked, Reruns
from crosslign.stages import STAGES


def cached_project(
    config: Sequence[str] = (), folder: Path | None = None, configfile: Path | None = None, *, checks: bool = True
) -> Project:
    """Return the catalog with the cache as its folder of results; entries of a `config/` in the working directory are read over it.

    `folder` stands in the working directory's place; arguments and errors are those of `project_in`.
    """
    return project_in(folder or Path.cwd(), [*config, f"results={cache_folder()}", "papers=[quickstart]"], configfile, checks=checks)


@dataclass
class Steps:
    """Runs stages in this process, each only where lineage does not say that what it makes is there.

    Attributes:
        work: folder of their logs.
    """

    work: Path
    _reruns: Reruns = field(default_factory=Reruns)

    def run(
        self,
        name: str,
        recipe: Mapping[str, Any],
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Path],
        root: Path,
        resources: Mapping[str, Any] | None = None,
        copied: Sequence[Path] = (),
        **params: Any,
    ) -> None:
        """Run one stage with the inputs, outputs, parameters and resources that its rule would give it; `root` is what lineage names from.

        `copied` is that of `Asked`.

        Raises:
            CrosslignError: it cannot do its work; says why.
        """
        given = {"recipe": recipe, "version": job_versions(name, recipe), "root": str(root), **params}
        asked = Asked(list(outputs.values()), all_paths(listed(dict(inputs))), copied, given)
        if all(path.exists() for path in outputs.values()) and self._reruns.described(outputs.values()) and not self._reruns.why(asked):
            return
        as_given = {key: [*map(str, value)] if isinstance(value, list) else str(value) for key, value in inputs.items()}
        written = [(key, str(path)) for key, path in outputs.items()]
        log = self.work / "logs" / name / f"{recipe.get('side', self.work.name)}.log"
        perform(STAGES.get(name), as_given.items(), written, given, int(params.get("threads", 1)), log, resources or {})
        self._reruns = Reruns()  # what it has read of files may be another now

    def fetch(self, project: Project, source: str, files: Sequence[str]) -> None:
        """Fetch files of a source of the catalog; at a scale of synthetic data, write all of them."""
        paths, entry = graph.source_paths(project, source), project.sources[source]
        if project.stand_in and "stand_in" in entry:
            self.fetch(project, "written", list(graph.source_paths(project, "written")))
            recipe = graph.stand_in_recipe(project, source)
            sentences = list(graph.source_paths(project, "written").values())
            self.run(STAND_IN_RULE, recipe, {"sentences": sentences}, paths, project.paths.results)
            return
        mirrors = os.pathsep.join(map(str, project.mirrors))
        for name in files:
            recipe, hints = graph.source_recipe(project, source, name), hints_text(entry, graph.source_file(project, source, name))
            given = {"mirrors": mirrors, "hints": hints}
            copied = copied_file(project, source, name)
            self.run("fetch", recipe, {}, {"file": paths[name]}, project.paths.shared, given, copied, offline=False)

    def _files(self, project: Project, entry: Corpus | Encoder) -> dict[str, list[Path]]:
        """Fetch the files that an entry reads; return them as its stage takes them."""
        files = graph.own_files(project, entry)
        if files:
            self.fetch(project, entry["source"], list(files))
        return {"files": list(files.values())} if files else {}

    def encoder(self, project: Project, encoder: str) -> None:
        """Fetch and prepare a base encoder, with the corpora that its vocabulary is pruned to."""
        paths, entry = project.paths, project.encoders[encoder]
        for _, corpus in graph.made_of(project, "encoder", encoder):
            self.corpus(project, corpus)
        inputs = {**self._files(project, entry), "corpora": graph.encoder_corpora(project, encoder)}
        recipe, own = graph.encoder_recipe(project, encoder), own_encoder(project, encoder)
        given: dict[str, Any] = {"offline": "hub" not in entry, "own": [*map(str, own)]}
        self.run("prepare_encoder", recipe, inputs, {"folder": paths.encoder(encoder)}, paths.results, copied=own, **given)

    def corpus(self, project: Project, corpus: str) -> None:
        """Fetch and build a corpus, with those that it is made of."""
        entry = project.corpora[corpus]
        references, parts = graph.corpus_references(project, corpus), graph.evaluation_parts(project, corpus)
        for _, other in graph.made_of(project, "corpus", corpus):
            self.corpus(project, other)
        for model, (file, _) in graph.model_files(project, entry).items():
            self.fetch(project, model, [file])
        inputs, own = named_inputs(**self._files(project, entry), references=references, parts=parts), own_models(entry, project.sources)
        given: dict[str, Any] = {"own": [*map(str, own)]}
        if entry["kind"] == "evaluation":
            outputs = {f"{part}_rows": project.paths.evaluation(corpus, part) for part in EVALUATION_FILES}
            self.run("build_evaluation", graph.corpus_recipe(project, corpus), inputs, outputs, project.paths.results, copied=own, **given)
        else:
            outputs = {"rows": graph.corpus_path(project, corpus)}
            self.run("build_corpus", graph.corpus_recipe(project, corpus), inputs, outputs, project.paths.results, copied=own, **given)


def made(config: Sequence[str], *, encoders: Sequence[str] = (), corpora: Sequence[str] = ()) -> None:
    """Make base encoders and corpora in the cache, in a process of its own, unless they are there.

    Args:
        config: as `cached_project` took it, which has checked it.
        encoders, corpora: ids of that project.

    Raises:
        CrosslignError: no network, no room, or a file that is not what it should be; says why.
    """
    words = [*(f"encoder:{name}" for name in encoders), *(f"corpus:{name}" for name in corpora)]
    done = subprocess.run([sys.executable, "-m", __name__, *words, "--", *config], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        kinds = {kind.exit_code: kind for kind in (InputError, NetworkError, ResourceError)}
        raise kinds.get(done.returncode, CrosslignError)(done.stdout.strip() or "the process that prepares encoders and corpora was killed")


def main(words: Sequence[str]) -> int:
    """Make what the words before `--` name, with the settings behind it; return the exit code of an error."""
    names, config = words[: words.index("--")], words[words.index("--") + 1 :]
    project = cached_project(config, checks=False)  # who asks has checked it
    work = cache_folder() / "work"
    try:
        with only_one(work / "steps"):
            steps = Steps(work)
            for kind, _, name in (word.partition(":") for word in names):
                (steps.encoder if kind == "encoder" else steps.corpus)(project, name)
    except CrosslignError as error:
        print(error)  # messages of the stages go to standard error
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
