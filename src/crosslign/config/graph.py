"""The graph of the data: what each entry is made of, all that stands behind it, and the paths that a job of it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from crosslign.config.catalog import file_names
from crosslign.config.entry_keys import head_of
from crosslign.config.project import Project, filter_corpora, filter_models, remembered, view_corpora
from crosslign.config.readouts import readout as readout_entry
from crosslign.config.readouts import variant
from crosslign.config.resolve import encoder_at_scale, encoders_under, is_untrained, role_readout, run_recipe, runs_of, split_run
from crosslign.config.trials import choice_recipe, trials_of
from crosslign.entries.catalog import Corpus, Encoder
from crosslign.entries.resolved import AskedFile, RunRecipe
from crosslign.errors import InputError
from crosslign.paths import EVALUATION_FILES

NO_SETTINGS = frozenset(
    {
        "about_bytes",
        "access",
        "citation",
        "connections",
        "evidence",
        "expect_none",
        "how",
        "longest",
        "normalises",
        "parameters_m",
        "readout",
        "share",
        "urls",
    }
)
"""Keys of catalog entries on which no byte of what is made of them depends: words for people, rough sizes, other addresses, uses."""


def settings_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a recipe takes of an entry of the catalog, so that a corrected citation reruns no download and no training."""
    return {key: value for key, value in entry.items() if key not in NO_SETTINGS}


Node = tuple[str, str]
"""An entry by its kind and id: `task`, `corpus` (any corpus, or a view), `examples`, `encoder`, `choice` (of a tuned system) or a `run`; a
`system` is its first run."""


def _at_scale(project: Project, node: Node) -> Node:
    """Return a node as this scale makes it: of a system its first run, of an untrained one the encoder that stands for it."""
    kind, name = node
    if kind == "system":
        kind, name = "run", runs_of(project, name)[0]
    return ("encoder", encoder_at_scale(project, name)) if kind == "run" and is_untrained(project, name) else (kind, name)


@remembered
def made_of(project: Project, kind: str, name: str) -> tuple[Node, ...]:
    """Return what an entry is made of, is selected by, or is kept clear of: the edges of the graph."""
    corpora: Iterable[str] = ()
    others: list[Node] = []
    match kind:
        case "task":
            corpora = project.tasks[name]["texts"].values()
        case "corpus" if name in project.views:
            corpora = view_corpora(project.views[name])
        case "corpus":
            corpus = project.corpora[name]
            corpora = [*corpus.get("from", []), *corpus.get("of", []), *filter_corpora(corpus)]
        case "examples":
            examples = project.examples[name]
            corpora = [*examples.get("from", []), *examples.get("decontaminate", [])]
            others = [("examples", other) for other in examples.get("of", [])]
            others += [("encoder", teacher) for teacher in teachers(project, name)]
        case "encoder":
            encoder = project.encoders[name]
            corpora = encoder["prune"]["corpora"] if "prune" in encoder else ()
        case "run":
            recipe = run_recipe(project, name)
            others = [("encoder", member) for member in recipe["base"].get("members", {}).values()]
            others += [("run", recipe["base"]["run"])] if "run" in recipe["base"] else []
            others += [("examples", term["examples"]) for term in recipe["terms"]]
            others += [("task", select["task"]) for select in recipe["select"].values()]
            others += [("choice", recipe["system"])] if trials_of(project, recipe["system"]) else []
        case "choice":
            others = [("system", trial) for trial in trials_of(project, name)]
    return (*(("corpus", corpus) for corpus in corpora), *(_at_scale(project, other) for other in others))


def ancestors(project: Project, nodes: Iterable[Node]) -> dict[Node, None]:
    """Return nodes and all that they are made of, each once: a node, then what is behind its first input, and so on."""
    found: dict[Node, None] = {}
    waiting = [_at_scale(project, node) for node in nodes][::-1]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += made_of(project, *node)[::-1]
    return found


@remembered
def _source_files(project: Project, source: str) -> Mapping[str, AskedFile]:
    return {file["name"]: cast(AskedFile, file) for file in project.sources[source]["files"]}


def source_file(project: Project, source: str, name: str) -> AskedFile:
    """Return the catalog's entry of one file of a source."""
    return _source_files(project, source)[name]


def source_paths(project: Project, source: str) -> dict[str, Path]:
    """Return where each file of a source lies once fetched, by name."""
    return {file["name"]: project.paths.download(source, file["name"]) for file in project.sources[source]["files"]}


def source_entry(project: Project, source: str) -> dict[str, Any]:
    """Return a source's entry without its files, which recipes name one by one."""
    return {key: value for key, value in settings_of(project.sources[source]).items() if key != "files"}


def source_recipe(project: Project, source: str, name: str) -> dict[str, Any]:
    """Return the recipe of fetching one file."""
    entry = source_entry(project, source)
    return {"source": source, "entry": entry, "file": settings_of(source_file(project, source, name))}


def stand_in_recipe(project: Project, source: str) -> dict[str, Any]:
    """Return the recipe of writing all files of a source as synthetic data."""
    files = [settings_of(file) for file in project.sources[source]["files"]]
    return {"source": source, "entry": source_entry(project, source), "files": files}


def corpus_recipe(project: Project, corpus: str) -> dict[str, Any]:
    """Return the recipe of building a corpus, an evaluation corpus too."""
    entry = project.corpora[corpus]
    limit = "evaluation_items" if entry["kind"] == "evaluation" else "corpus_rows"
    return {"corpus": corpus, "entry": settings_of(entry), "limit": None if entry.get("whole") else project.scale["limits"].get(limit)}


def corpus_parts(project: Project, corpus: str) -> list[str]:
    """Return the names of the shares of a large corpus that jobs filter, one each: `1-of-2`, `2-of-2`; none where its own job does."""
    jobs = project.settings["corpus_shards"].get(corpus, 1)
    return [f"{part}-of-{jobs}" for part in range(1, jobs + 1)] if jobs > 1 else []


def share_recipe(project: Project, corpus: str, part: str) -> dict[str, Any]:
    """Return the recipe of filtering one share of a corpus."""
    own, _, jobs = part.partition("-of-")
    return {**corpus_recipe(project, corpus), "part": int(own), "parts": int(jobs)}


def encoder_recipe(project: Project, encoder: str) -> dict[str, Any]:
    """Return the recipe of preparing a base encoder."""
    return {"encoder": encoder, "entry": settings_of(project.encoders[encoder])}


def corpus_langs(entry: Corpus) -> str:
    """Return the file stem of a corpus: `de`, `de-en` or `all`."""
    if entry["kind"] == "mono" and len(entry["langs"]) == 1:
        return str(entry["langs"][0])
    if entry["kind"] == "bitext" and len(entry["langs"]) == 2:
        return "-".join(entry["langs"])
    return "all"


def corpus_path(project: Project, corpus: str) -> Path:
    """Return the rows of a corpus (or of a view of one); the texts of an evaluation corpus."""
    if corpus in project.views:
        return project.paths.view(corpus)
    entry = project.corpora[corpus]
    if entry["kind"] == "evaluation":
        return project.paths.evaluation(corpus, "texts")
    return project.paths.corpus(corpus, corpus_langs(entry))


def own_files(project: Project, entry: Corpus | Encoder) -> dict[str, Path]:
    """Return the files of its source that an entry of a corpus or an encoder reads, by name."""
    if "source" not in entry:
        return {}
    source = entry["source"]
    return {name: project.paths.download(source, name) for name in file_names(project.sources[source], entry)}


def model_files(project: Project, entry: Corpus | Encoder) -> dict[str, tuple[str, Path]]:
    """Return the models that an entry's filters read, each the first file of its source: its name and path, by the source."""
    return {name: next(iter(source_paths(project, name).items())) for name in filter_models(entry, project.sources)}


def corpus_references(project: Project, corpus: str) -> dict[str, Path]:
    """Return the other corpora that a corpus is derived from or filtered against, by id, and its filters' models, by their source."""
    entry = project.corpora[corpus]
    models = {name: path for name, (_, path) in model_files(project, entry).items()}
    return {**{name: corpus_path(project, name) for name in [*entry.get("from", []), *filter_corpora(entry)]}, **models}


@remembered
def evaluation_paths(project: Project, corpus: str) -> Mapping[str, Path]:
    """Return `texts`, `items` and `gold` of an evaluation corpus."""
    return {part: project.paths.evaluation(corpus, part) for part in EVALUATION_FILES}


def evaluation_parts(project: Project, corpus: str) -> dict[str, Mapping[str, Path]]:
    """Return the tables of the evaluation corpora that a joined or cut one is made of, by id."""
    return {part: evaluation_paths(project, part) for part in project.corpora[corpus].get("of", [])}


def encoder_corpora(project: Project, encoder: str) -> list[Path]:
    """Return the rows of the corpora that an encoder's vocabulary is pruned to."""
    return [corpus_path(project, name) for _, name in made_of(project, "encoder", encoder)]


def view_inputs(project: Project, view: str) -> dict[str, Path]:
    """Return the corpora and dictionaries that a view reads, by id."""
    return {name: corpus_path(project, name) for name in view_corpora(project.views[view])}


def examples_inputs(project: Project, examples: str) -> dict[str, dict[str, Path]]:
    """Return what a training set reads: `corpora`, `evaluations` (texts to keep out), `others` (example sets) and its `teacher`."""
    entry = project.examples[examples]
    return {
        "corpora": {name: corpus_path(project, name) for name in entry.get("from", [])},
        "evaluations": {name: project.paths.evaluation(name, "texts") for name in entry.get("decontaminate", [])},
        "others": {name: project.paths.examples(name) for name in entry.get("of", [])},
        "teacher": {name: project.paths.encoder(name) for name in teachers(project, examples)},
    }


def teachers(project: Project, examples: str) -> list[str]:
    """Return the encoder that teaches a training set, as this scale has it; none where its entry names none."""
    entry = project.examples[examples]
    return [encoder_at_scale(project, entry["teacher"])] if "teacher" in entry else []


def examples_recipe(project: Project, examples: str) -> dict[str, Any]:
    """Return the recipe of building a training set; a teacher gives its vectors in fp32, as long as they come."""
    recipe: dict[str, Any] = {
        "examples": examples,
        "entry": project.examples[examples],
        "limit": project.scale["limits"].get("example_rows"),
    }
    for encoder in teachers(project, examples):
        recipe["readout"] = {**readout_entry(project, project.encoders[encoder]["readout"]), "normalise": False, "precision": "fp32"}
    return recipe


def base_members(project: Project, recipe: RunRecipe) -> dict[str, Path]:
    """Return the folder of each member that a training starts from; it lies inside an encoder's or a run's folder."""
    base = recipe["base"]
    if "run" in base:
        return run_members(project, base["run"], base["checkpoint"])
    return {member: project.paths.encoder(encoder) / "main" for member, encoder in base["members"].items()}


def base_inputs(project: Project, recipe: RunRecipe) -> list[Path]:
    """Return the declared folders that a training starts from: prepared encoders, or one run."""
    base = recipe["base"]
    if "run" in base:
        return [project.paths.system(base["run"])]
    return [project.paths.encoder(encoder) for encoder in base["members"].values()]


def choice_inputs(project: Project, recipe: RunRecipe) -> dict[str, Path]:
    """Return the choice that a training takes values from; nothing of a system that is not tuned."""
    return {"choice": project.paths.choice(recipe["system"])} if trials_of(project, recipe["system"]) else {}


def trial_folders(project: Project, system: str) -> dict[str, Path]:
    """Return the folders of the runs among which a tuned system's values are chosen, by run."""
    return {run: project.paths.system(run) for run in choice_recipe(project, system)["trials"]}


def selection_sets(project: Project, recipe: RunRecipe) -> dict[str, Mapping[str, Path]]:
    """Return the evaluation corpora of a system's dev evaluations, by id."""
    tasks = [select["task"] for select in recipe["select"].values()]
    corpora = sorted({corpus for task in tasks for corpus in project.tasks[task]["texts"].values()})
    return {corpus: evaluation_paths(project, corpus) for corpus in corpora}


def run_folder(project: Project, run: str) -> Path:
    """Return the declared folder of a run: its own, or that of the base encoder."""
    if is_untrained(project, run):
        return project.paths.encoder(encoder_at_scale(project, run))
    return project.paths.system(run)


def run_members(project: Project, run: str, checkpoint: str) -> dict[str, Path]:
    """Return the folder of each member of a run's checkpoint."""
    if is_untrained(project, run):
        return {"main": run_folder(project, run) / "main"}
    return {member: project.paths.system(run) / checkpoint / member for member in encoders_under(project, split_run(project, run)[0])}


def run_head(project: Project, run: str, text_set: str) -> dict[str, Any]:
    """Return the classification part, `name` and its entry, whose logits a run gives on an evaluation corpus; empty for embeddings.

    Raises:
        InputError: tasks want both of one evaluation corpus, or the run has no such part.
    """
    outputs = {task["output"] for task in project.tasks.values() if text_set in task["texts"].values()}
    if "logits" not in outputs:
        return {}
    if len(outputs) > 1:
        raise InputError(
            f"tasks need both vectors and logits of {text_set!r}",
            where="config/tasks.yaml",
            do="Give each kind of task its own evaluation corpus",
        )
    recipe = None if is_untrained(project, run) else run_recipe(project, run)
    name = head_of(recipe) if recipe else None
    if recipe is None or name is None:
        raise InputError(
            f"{run} has no classification head for {text_set!r}", where="config/papers", do="Name a fine-tune in the table's column"
        )
    return {"name": name, "entry": recipe["parts"][name]}


def fitted_to(project: Project, run: str, checkpoint: str, readout: str) -> dict[str, Path]:
    """Return `matrix`, `texts` and `items` of what a whitened readout is fitted to, read by the same run without whitening."""
    entry = readout_entry(project, readout)
    if not (whitening := entry.get("whitening")):
        return {}
    raw = variant(project, whitening["of"], entry["max_length"], raw=True)
    found = {part: path for part, path in evaluation_paths(project, whitening["text_set"]).items() if part != "gold"}
    return {"matrix": project.paths.embeddings(run, checkpoint, raw, whitening["text_set"]), **found}


def score_inputs(project: Project, run: str, checkpoint: str, readout: str, task: str) -> dict[str, dict[str, Path]]:
    """Return, for each role of a task, its `matrix` and the three tables of its evaluation corpus."""
    system = split_run(project, run)[0]
    return {
        role: {
            "matrix": project.paths.embeddings(run, checkpoint, role_readout(project, system, readout, task, role), corpus),
            **evaluation_paths(project, corpus),
        }
        for role, corpus in project.tasks[task]["texts"].items()
    }


def score_length(project: Project, run: str, readout: str, task: str) -> int:
    """Return the tokens of the longest evaluation corpus of a score."""
    system = split_run(project, run)[0]
    names = {role_readout(project, system, readout, task, role) for role in project.tasks[task]["texts"]}
    return max(int(readout_entry(project, name)["max_length"]) for name in names)
