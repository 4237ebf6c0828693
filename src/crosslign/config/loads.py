"""Estimated load of a job from the catalog alone: bytes of text, parameters, compared pairs, disk while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from crosslign.config.catalog import bytes_of, file_names
from crosslign.config.graph import corpus_parts, examples_inputs, selection_sets, source_file, teachers
from crosslign.config.mining import mine_recipe, side_files
from crosslign.config.project import Project, filter_models, remembered, translator_of
from crosslign.config.resolve import LAST, encoders_trained, entry_of, kept_checkpoints, run_recipe, split_run
from crosslign.entries.resolved import RunRecipe
from crosslign.files.walk import size_of
from crosslign.paths import MINED_SIDES

Wildcards = Mapping[str, str]

UNKNOWN_MB = {False: 50.0, True: 2.0}
"""Size of a file of which the catalog says none, by whether evaluation corpora alone are made of it."""
STAND_IN_MB = 0.2
PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst", ".tgz", ".whl", ".parquet")
UNPACKED_BY = 4.0
"""How much larger text is than its archive."""
BYTES_A_ROW = 300
BYTES_A_SENTENCE = 100
UNKNOWN_MILLIONS = 300.0
"""Parameters of an encoder of which the catalog says none."""
EMBED_RULES = ("embed", "embed_large")
"""Rules that write vectors."""
PARSING = ("wikipedia_dump",)
"""Readers that parse in processes of their own."""
PARSING_TIMES = 3.5
"""How much longer than others a text takes to read that is parsed: seven hours for Wikipedia (docs/filters-and-views.md)."""
STAGING = frozenset({"exact_duplicate", "near_duplicate"})
"""Filters that let all rows before them wait on disk."""
WHOLE = frozenset({"as_clean", "near_duplicate", "not_near", "punctuation"})
"""Filters that must see all rows, whatever sample is drawn behind them."""
LANGUAGE_ID = 11
"""How much longer than all other filters, as declared, the identification of languages takes: 426 microseconds a pair of 204 bytes
(one core of an AMD EPYC), where 673 are declared."""
SPARE_MB = 20.0
"""Rows of a sample that are held beyond twice those wanted, before any is let go (`corpora.sampling.SPARE`)."""
COPY_SHARE = 2.2
"""Size of a tokenised copy of a training's examples, for the size of their text: the rows, unpacked, and token ids of 4 bytes."""
SEARCHING = ("bitext_mining",)
"""Scorers that compare each sentence with all of the other side; the sides of the other scorers' sets are small."""
NANOSECONDS_A_PAIR = 24.9
"""Of a search in float32 at 1,024 dimensions in one thread; 13.1 where the CPU multiplies bfloat16 (docs/archive/measurements.md)."""
UNEQUAL = 1.5
MANY_COMPARED = 1e10
"""Pairs from which on a score gets `SEARCH_THREADS`, or a GPU: four minutes of one thread."""
SEARCH_THREADS = 8
GPU_SPEED = 20.0
"""How many times as fast as so many threads one GPU searches, at the least: reckoned from its peak, not measured."""
ENCODING_HOURS = 0.25 / 560
"""GPU-hours of encoding a million sentences, by million parameters, at most: an H200 takes 0.16 h for 560 million in float32."""
CPU_TIMES = 50.0
"""How many times as long as on a GPU encoding takes on two cores: 10,417 sentences in 95 s, 118 M parameters (docs/calibration.md)."""
KEY_BYTES = {"float32": 4, "float16": 2}
"""Of a number of a queue's keys, as stored."""
TAUGHT = 8.0
"""Size of a pair with a teacher's vector of some 400 numbers, beside that of the pair alone."""
LARGE_MB = 100.0
"""Text (MB) from which on the vectors of a set are temporary, unless `keep` says otherwise: 4 GB a run at 1,024 dimensions."""


@dataclass(frozen=True)
class Load:
    """What a job works on.

    Attributes:
        text_mb: text that it works on, unpacked: of a corpus what its sample keeps, as that is what later jobs read.
        parameters: of its encoder, in millions; 0 without one.
        gpu_hours: declared hours of a training on a large GPU; None where none are declared.
        read_mb: text that it reads to get there, unpacked; a sample is drawn after reading, so it has no part in it.
        reading: how much longer than others it takes to read.
        staged_mb: disk that it needs while it runs, and gives back.
        kept_mb: disk of a trained run.
        filtered_mb: text of a corpus that goes through filters which look at a row alone: of a sample, the rows that could be drawn then.
        held_mb: text of a sample, which stays in memory until all rows have come; of a training, keys of its queue.
        slowness: how much longer than others such filters take, or a view: a third where no model translates.
        models_mb: models that a corpus' filters ask, each process its own copy.
        compared: pairs of sentences that a search compares.
        gpus: devices that search or encode; without one, threads do.
    """

    text_mb: float = 0.0
    parameters: float = 0.0
    gpu_hours: float | None = None
    read_mb: float = 0.0
    reading: float = 1.0
    staged_mb: float = 0.0
    kept_mb: float = 0.0
    filtered_mb: float = 0.0
    held_mb: float = 0.0
    slowness: float = 1.0
    models_mb: float = 0.0
    compared: float = 0.0
    gpus: int = 0

    @property
    def sentences(self) -> float:
        """About how many sentences the text has."""
        return self.text_mb * 1e6 / BYTES_A_SENTENCE

    @property
    def vectors_mb(self) -> float:
        """Size of the vectors of all sentences."""
        return self.sentences * self.dimension * 4 / 1e6

    @property
    def dimension(self) -> int:
        """Of its encoder's vectors, by the encoder's size."""
        return 1024 if self.parameters > 400 else 768 if self.parameters > 60 else 384

    @property
    def encoding_hours(self) -> float:
        """Hours of encoding its sentences on a GPU, or on two cores."""
        return ENCODING_HOURS * self.parameters * self.sentences / 1e6 * (1.0 if self.gpus else CPU_TIMES)

    @property
    def search_minutes(self) -> float:
        """Minutes of its search on its GPUs, or on a CPU that multiplies no bfloat16, with the threads that such a job gets."""
        threads = SEARCH_THREADS if self.compared > MANY_COMPARED else 1.0
        threads *= max(1.0, GPU_SPEED * self.gpus)
        return self.compared * NANOSECONDS_A_PAIR * 1e-9 / 60 * self.dimension / 1024 / threads


def declared_hours(project: Project, run: str) -> float | None:
    """Return the GPU-hours that the recipe of a run declares; None where it declares none, or the scale cuts the recipe down."""
    if any(limit in project.scale["limits"] for limit in ("steps", "example_rows")):
        return None
    hours = entry_of(project, split_run(project, run)[0]).get("gpu_hours")
    return None if hours is None else float(hours)


def _capped(size: float, rows: int | None) -> float:
    return min(size, rows * BYTES_A_ROW / 1e6) if rows else size


@remembered
def files_mb(project: Project, corpus: str, unpacked_by: float = UNPACKED_BY) -> float:
    """Return the size of a corpus' own files: those of its source that it names, or all."""
    entry = project.corpora[corpus]
    source = project.sources[entry["source"]]
    read = file_names(source, entry)
    files = [file for file in source["files"] if file["name"] in read]
    sizes = [bytes_of(file) / 1e6 * (unpacked_by if file["name"].endswith(PACKED) else 1.0) for file in files]
    unknown = sizes.count(0.0)
    small = bool(unknown) and (entry["kind"] == "evaluation" or corpus in project.evaluated_alone)
    return sum(sizes) + unknown * UNKNOWN_MB[small]


def _read_mb(project: Project, corpus: str) -> float:
    """Return the text that is read to make a corpus, unpacked: its own files and what it is cut from, whole."""
    entry = project.corpora[corpus]
    size = sum(corpus_mb(project, name) for name in [*entry.get("from", []), *entry.get("of", [])])
    if "source" in entry:
        size += STAND_IN_MB if project.stand_in else files_mb(project, corpus)
    return size


def filters_of(project: Project, corpus: str) -> set[str]:
    """Return the names of a corpus' filters."""
    return {rule for step in project.corpora[corpus].get("filters", []) for rule in step}


@remembered
def corpus_mb(project: Project, corpus: str) -> float:
    """Return the size of a corpus or view, unpacked; at most what its entry or the scale keeps of it.

    A view holds so many copies of its corpora's rows; of dictionaries and given translations it copies nothing.
    """
    if corpus in project.views:
        entry: Mapping[str, Any] = project.views[corpus]  # with the options of its builder
        copied = sum(corpus_mb(project, name) * _in_languages(project, entry, name) for name in entry["from"])
        return copied * int(entry.get("views", 1))
    own = project.corpora[corpus]
    size = _capped(_read_mb(project, corpus) * own.get("share", 1.0), own.get("sample") or own.get("options", {}).get("size"))
    return size if own["kind"] == "evaluation" or own.get("whole") else _capped(size, project.scale["limits"].get("corpus_rows"))


@remembered
def large_sets(project: Project) -> list[str]:
    """Return the evaluation corpora whose vectors are removed after their last score."""
    if project.settings.get("keep", {}).get("embeddings"):
        return []
    shown = {entry["text_set"] for entry in project.figures.values() if "text_set" in entry}
    sets = [name for name, entry in project.corpora.items() if entry["kind"] == "evaluation" and name not in shown]
    return [name for name in sets if corpus_mb(project, name) > LARGE_MB]


@remembered
def examples_mb(project: Project, examples: str) -> float:
    """Return the size of a training set, as far as it follows from its corpora; at most what its entry or the scale keeps of it."""
    entry: Mapping[str, Any] = project.examples[examples]  # with the options of its builder
    size = sum(corpus_mb(project, name) * _taken(project, entry, name) for name in entry.get("from", []))
    size += sum(examples_mb(project, name) for name in examples_inputs(project, examples)["others"])
    size *= TAUGHT if "teacher" in entry else 1.0
    if "max_per_pair" in entry:
        size = _capped(size, entry["max_per_pair"] * max(1, len(entry.get("pairs", [])) or len(entry.get("langs", []))))
    return _capped(_capped(size, entry.get("rows")), project.scale["limits"].get("example_rows"))


def _taken(project: Project, entry: Mapping[str, Any], corpus: str) -> float:
    """Return the share of a corpus' rows that labelled examples take, by their languages; 1 where the entries do not say."""
    return _in_languages(project, entry, corpus) if entry.get("builder") == "labelled_rows" else 1.0


def _in_languages(project: Project, entry: Mapping[str, Any], corpus: str) -> float:
    """Return the share of a corpus or view that is in the languages of an entry; 1 where one of both does not say which."""
    read: Mapping[str, Any] = project.views.get(corpus) or project.corpora[corpus]
    there, wanted = read.get("langs"), entry.get("langs")
    return len(set(wanted) & set(there)) / len(there) if wanted and there else 1.0


def _examples_read_mb(project: Project, examples: str) -> float:
    size = sum(corpus_mb(project, name) for name in project.examples[examples].get("from", []))
    return size + sum(examples_mb(project, name) for name in examples_inputs(project, examples)["others"])


@remembered
def parameters(project: Project, run: str) -> float:
    """Return the parameters of a run's encoders, in millions."""
    return sum(encoder_size(project, encoder) for encoder in encoders_trained(project, split_run(project, run)[0]).values())


def encoder_size(project: Project, encoder: str) -> float:
    """Return the parameters of a base encoder, in millions."""
    entry = project.encoders[encoder]
    if "construct" in entry:
        made = entry["construct"]
        return float(made["hidden"] * (made["vocabulary"] + made["layers"] * (4 * made["hidden"] + 2 * made["intermediate"]))) / 1e6
    return float(entry.get("parameters_m", UNKNOWN_MILLIONS))


def _corpus(project: Project, w: Wildcards) -> Load:
    """Return the load of a corpus: all that its files hold is read, and goes through the filters unless a sample is drawn before them."""
    read, text, filters = _read_mb(project, w["corpus"]), corpus_mb(project, w["corpus"]), filters_of(project, w["corpus"])
    slowness = 1.0 + LANGUAGE_ID * ("language_id" in filters)
    reading = PARSING_TIMES if project.corpora[w["corpus"]].get("reader") in PARSING else 1.0
    models = _models_mb(project, w["corpus"])
    if not drawn_first(project, w["corpus"]):
        staged = read if filters & STAGING else 0.0
        return Load(text, read_mb=read, reading=reading, staged_mb=staged, filtered_mb=read, slowness=slowness, models_mb=models)
    # The first rows, twice the sample, could all be drawn; behind n rows the next one can with probability sample / n.
    filtered = min(read, SPARE_MB + text * (2.0 + math.log(max(1.0, read / max(2.0 * text, 1e-6)))))
    return Load(text, read_mb=read, reading=reading, filtered_mb=filtered, held_mb=text, slowness=slowness, models_mb=models)


def _models_mb(project: Project, corpus: str) -> float:
    """Return the size of the models that a corpus' filters ask, where the catalog knows it."""
    named = filter_models(project.corpora[corpus], project.sources)
    return sum(bytes_of(file) / 1e6 for name in named for file in project.sources[name]["files"])


def _share(project: Project, w: Wildcards) -> Load:
    """Return the load of one job of several that share a corpus: each reads all of the source, and leaves what it filtered on disk."""
    whole = _corpus(project, w)
    filtered = whole.filtered_mb / len(corpus_parts(project, w["corpus"]))
    return replace(whole, filtered_mb=filtered, staged_mb=filtered)


def _joined(project: Project, w: Wildcards) -> Load:
    """Return the load of a corpus whose source was filtered by other jobs, or of one that filters by itself."""
    whole = _corpus(project, w)
    return replace(whole, read_mb=whole.filtered_mb, filtered_mb=0.0) if corpus_parts(project, w["corpus"]) else whole


def _examples(project: Project, w: Wildcards) -> Load:
    taught = sum(encoder_size(project, encoder) for encoder in teachers(project, w["examples"]))
    # A teacher encodes on CPUs what is an eighth of the text with its vectors.
    return Load(examples_mb(project, w["examples"]), taught / TAUGHT, read_mb=_examples_read_mb(project, w["examples"]))


def _tokenising(project: Project, w: Wildcards) -> Load:
    text = examples_mb(project, w["examples"])
    return Load(read_mb=text, staged_mb=COPY_SHARE * text)


def drawn_first(project: Project, corpus: str) -> bool:
    """Tell whether a sample of a corpus is drawn while it is read, so that nothing waits on disk and costly filters see few rows."""
    entry = project.corpora[corpus]
    bounded = "sample" in entry or ("corpus_rows" in project.scale["limits"] and not entry.get("whole"))
    return bounded and entry["kind"] in ("mono", "bitext") and not filters_of(project, corpus) & WHOLE


def _training(project: Project, w: Wildcards) -> Load:
    recipe = run_recipe(project, w["run"])
    text = sum(examples_mb(project, name) for name in {term["examples"] for term in recipe["terms"]})
    text += sum(corpus_mb(project, name) for name in selection_sets(project, recipe))
    hours, keys = declared_hours(project, w["run"]) or None, _keys_mb(project, w["run"], recipe)
    kept, working = _training_mb(project, w["run"], recipe, keys)
    return Load(text, parameters(project, w["run"]), hours, staged_mb=working, kept_mb=kept, held_mb=keys or 0.0)


def _keys_mb(project: Project, run: str, recipe: RunRecipe) -> float | None:
    """Return the size of the rings of keys, one a member or one a language, in the type that they are stored in; None without a queue."""
    queues: list[Any] = [part for part in recipe["parts"].values() if part["kind"] == "momentum_queue"]
    members = len(encoders_trained(project, split_run(project, run)[0]))
    dimension = Load(parameters=parameters(project, run) / members).dimension
    rings = [(len(part.get("langs") or ()) or members) * part["size"] * KEY_BYTES[part.get("store", "float32")] for part in queues]
    return sum(rings) * dimension / 1e6 if queues else None


def _training_mb(project: Project, run: str, recipe: RunRecipe, keys: float | None) -> tuple[float, float]:
    """Return the disk of a run's folder, and of its working folder at its fullest.

    The run holds the weights (4 bytes a parameter) of each name that it keeps. While it trains there are two checkpoints and a third in
    the making: weights and AdamW's two moments, and of a momentum queue the copies and its keys; and of each name that a dev evaluation
    chooses the best model now, those of both checkpoints, and one in the making. Names that share a step share its files, which is not
    counted on.
    """
    weights = 4 * parameters(project, run)
    names = [name for name in kept_checkpoints(recipe) if name != LAST]
    checkpoint = 3 * weights + (0.0 if keys is None else weights + keys)
    return weights * (1 + len(names)), 3 * checkpoint + 4 * len(names) * weights


@remembered
def compared(project: Project, task: str) -> float:
    """Return how many pairs of sentences the scorer of a task compares: each side with the other, in every language pair of its sets.

    The catalog knows the size of a set, not of its sides: languages are taken to be equal in size, and `UNEQUAL` is what they are not.
    """
    entry, pairs = project.tasks[task], 0.0
    if entry["scorer"] not in SEARCHING:
        return pairs
    for corpus in entry["texts"].values():
        own = _language_pairs(project, corpus)
        whole = sum(_language_pairs(project, name) for name in project.corpora[corpus].get("of", [corpus]))
        sentences = corpus_mb(project, corpus) * own / whole * 1e6 / BYTES_A_SENTENCE
        pairs += UNEQUAL * sentences**2 / (4 * own)
    return pairs


def _language_pairs(project: Project, corpus: str) -> int:
    """Return how many languages of a set are paired with its pivot."""
    return max(1, len(project.corpora[corpus]["langs"]) - 1)


def _scoring(project: Project, w: Wildcards) -> Load:
    entry = project.tasks[w["task"]]  # of logits there are few numbers a text
    text = 0.0 if entry.get("output") == "logits" else sum(corpus_mb(project, corpus) for corpus in entry["texts"].values())
    return Load(text, parameters(project, w["run"]), compared=compared(project, w["task"]))


def _side_mb(project: Project, recipe: Mapping[str, Any], side: str) -> float:
    """Return the text of one side of a mining, unpacked; at most the lines that the scale reads."""
    sizes = [size_of(path) * (UNPACKED_BY if path.suffix in PACKED else 1.0) for path in side_files(project, recipe, side)]
    return _capped(sum(sizes) / 1e6, recipe["limit"])


def _mining(project: Project, w: Wildcards) -> Load:
    recipe = mine_recipe(project, w["mine"])
    sides = {side: _side_mb(project, recipe, side) for side in MINED_SIDES}
    text = sides.get(w.get("side", ""), sum(sides.values()))
    return Load(text, sum(encoder_size(project, encoder) for encoder in recipe["encoders"]), gpus=project.gpus)


def _searching(project: Project, w: Wildcards) -> Load:
    """Return the load of one range: all of the other side is read, and the smaller of both stays in memory."""
    recipe = mine_recipe(project, w["mine"])
    source, target = (_side_mb(project, recipe, side) for side in MINED_SIDES)
    source /= recipe["shards"]
    millions = sum(encoder_size(project, encoder) for encoder in recipe["encoders"])
    compared = source * target * (1e6 / BYTES_A_SENTENCE) ** 2
    return Load(min(source, target), millions, read_mb=source + target, compared=compared, gpus=project.gpus)


LOADS: Mapping[str, Callable[[Project, Wildcards], Load]] = {
    "fetch": lambda p, w: Load(bytes_of(source_file(p, w["source"], w["file"])) / 1e6),
    "prepare_encoder": lambda p, w: Load(parameters=encoder_size(p, w["encoder"])),
    "build_corpus": _joined,
    "filter_shards": _share,
    "build_evaluation": lambda p, w: Load(corpus_mb(p, w["corpus"]), read_mb=_read_mb(p, w["corpus"])),
    "build_view": lambda p, w: Load(
        corpus_mb(p, w["view"]), slowness=1.0 if {*translator_of(p.views[w["view"]])} - {"provided"} else 1 / 3
    ),
    "build_examples": _examples,
    "tokenise": _tokenising,
    "train_system": _training,
    **dict.fromkeys(EMBED_RULES, lambda p, w: Load(corpus_mb(p, w["text_set"]), parameters(p, w["run"]), gpus=p.gpus)),
    "score": _scoring,
    "measure_overlap": lambda p, w: Load(sum(corpus_mb(p, name) for name in p.corpora)),
    "draw_figure": lambda p, w: Load(  # of an encoder whose size is unknown
        sum(corpus_mb(p, name) for name in [p.figures[w["figure"]].get("text_set")] if name), UNKNOWN_MILLIONS
    ),
    **dict.fromkeys(("mine_texts", "mine_embed", "mine_join", "mine_calibrate", "mine_pairs"), _mining),
    "mine_search": _searching,
}
