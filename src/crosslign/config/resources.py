"""Resources of a job: memory, time and disk by rule, scale, base encoder, size of the data and attempt.

The figures are upper bounds of ordinary runs, not measurements: a job that ends for want of memory or time comes back with more.
"""

from __future__ import annotations

from dataclasses import dataclass

from crosslign.config.graph import corpus_parts
from crosslign.config.loads import (
    BYTES_A_SENTENCE,
    EMBED_RULES,
    LOADS,
    MANY_COMPARED,
    PARSING,
    SEARCH_THREADS,
    Load,
    Wildcards,
    compared,
    drawn_first,
    examples_mb,
    files_mb,
    filters_of,
)
from crosslign.config.project import Project
from crosslign.errors import InputError
from crosslign.registry import nearest

SHORTEST = 20
"""Minutes; a warning signal comes up to three minutes before the end, which a shorter job could mistake for its start."""
LONGEST = 1440
MOST_MB = 64_000
"""The first attempt asks for no more: large corpora are read as streams."""
LARGEST_MB = 120_000
"""No attempt asks for more, unless `max_mem_mb` says otherwise: a job that ended for want of time alone must still find a node."""
MOST_CPUS = 16
"""No job asks a cluster for more, unless `max_cpus` says otherwise."""
STAND_IN_RULE = "write_stand_in"
"""Each source has a rule of its own for its synthetic data, which appends the source's id."""
RULES = (
    "fetch", "prepare_encoder", "filter_shards", "build_corpus", "build_evaluation", "fetch_model", "build_view", "build_examples",
    "tokenise", "train_system", "choose", "embed", "embed_large", "score", "count_rows", "make_table", "draw_figure",
    "write_overview", "write_claims", "measure_overlap", "write_report", "mine_texts", "mine_embed", "mine_search", "mine_join",
    "mine_calibrate", "mine_pairs",
)  # fmt: skip
"""Names of the workflow's rules whose jobs do something, in the order of a run; the synthetic data of each source has one more."""
TOKENISING = 4
BUSY_TOKENISING_MB = 20.0
"""Processes that tokenise a training set of so much text or more; one takes some 20 seconds for it."""
BUSY_MB = 200.0
"""A corpus' own files, as published, from which on worker processes earn more than their start takes."""
FILTER_PROCESSES = 4
REMEMBERING = ("as_clean", "exact_duplicate", "near_duplicate", "not_near")
"""Filters that worker processes cannot take over: they remember rows."""
IN_MEMORY = ("build_examples",)
"""Rules whose memory grows with their rows, whose numbers they hold: they ask for what they need, however much."""


def stage_of(rule: str) -> str:
    """Return the name that a rule shares with its likes: what time and jobs are counted by."""
    if rule in EMBED_RULES:
        return EMBED_RULES[0]
    return STAND_IN_RULE if rule.startswith(f"{STAND_IN_RULE}_") else rule


@dataclass(frozen=True)
class Need:
    """What a job asks for: memory (MB), time (minutes), and disk for what it writes, for good or while it runs (MB)."""

    mem_mb: int
    runtime: int
    disk_mb: int


def search_threads(project: Project, task: str) -> int:
    """Return the threads of a score's searches, which its values do not depend on."""
    return SEARCH_THREADS if compared(project, task) > MANY_COMPARED else 1


def search_gpus(project: Project, task: str) -> int:
    """Return the GPUs of a score: one, where jobs have GPUs and its searches would keep a CPU busy for long."""
    return min(1, project.gpus) if compared(project, task) > MANY_COMPARED else 0


def _read_minutes(load: Load) -> float:
    """Return the minutes that a corpus' source takes to read."""
    return load.reading * load.read_mb / 500


def _filter_minutes(load: Load) -> float:
    """Return the minutes that a corpus' filters take in one process."""
    return load.slowness * load.filtered_mb / 200


def _asked(rule: str, load: Load) -> Need:
    """Return what the first attempt asks for."""
    text, read, model, vectors = load.text_mb, load.read_mb, load.parameters, load.vectors_mb
    encoding = 2 * 60 * load.encoding_hours  # on a slower GPU or CPU
    rows_m, read_m = load.sentences / 1e6, load.read_mb / BYTES_A_SENTENCE
    asked = {
        "fetch": (1000, 120, text),
        "fetch_model": (1000, 120, 3000),  # the catalog knows no sizes of translation models
        "write_stand_in": (1000, SHORTEST, 0),
        "prepare_encoder": (2000 + 12 * model, 60, 5 * model),
        # Of a sample twice the rows are held at once, with their keys.
        **dict.fromkeys(
            ("build_corpus", "filter_shards"),
            (
                2000 + 1.5 * text + 2.5 * load.held_mb + FILTER_PROCESSES * load.models_mb,
                30 + _read_minutes(load) + _filter_minutes(load),
                text + load.staged_mb,
            ),
        ),
        # Its items are held as Python's objects: 1.1 kB for each sentence of BUCC.
        "build_evaluation": (2000 + 10 * text + read, 30 + read / 50, text),
        "build_view": (3000 + 2.5 * text, load.slowness * (120 + text / 20), text),
        # Rows are read in parts, their numbers are held.
        "build_examples": (3000 + 0.3 * text, 30 + read / 250 + encoding, 3 * text),
        # Keys of the evaluation corpora are held, corpora are read in parts.
        "measure_overlap": (3000 + 0.02 * text, 60 + text / 100, 0),
        # A shard in each process: of rows with five views some 800 MB, beside one tokenizer of XLM-R.
        "tokenise": (8000, 30 + read / 20, load.staged_mb),
        # Weights, gradients and AdamW's two moments are 16 bytes a parameter; momentum encoders and checkpoints in the making, more.
        "train_system": (
            4000 + 24 * model + 2 * text + 2 * load.held_mb,  # keys, and those of a checkpoint in the making
            60 + 120 * (load.gpu_hours or 1.5),
            load.kept_mb + load.staged_mb,
        ),
        "embed": (3000 + 8 * model + 2 * text, 30 + encoding, vectors),
        "score": (3000 + 3 * vectors, 30 + 5 * rows_m + load.search_minutes, 0),
        "draw_figure": (4000 + vectors, 60, 0),  # of the nearest sentences of a pool, all of whose vectors are searched
        "count_rows": (1000, 60, 0),  # lineage names the sums of all that is counted: a GB a second
        "mine_texts": (2000 + 2 * text, 60, text),
        "mine_embed": (4000 + 8 * model, 120 + encoding, vectors),
        # The smaller of range and other side is held in low precision, best lists and measures of both; 4 neighbours take 48 bytes.
        "mine_search": (9000 + vectors + 200 * read_m, 60 + read / 100 + 1.5 * load.search_minutes, 48 * read_m),
        "mine_join": (4000 + 250 * rows_m, 60, 48 * rows_m),
        "mine_calibrate": (8000 + 3 * vectors, 720, 0),
        "mine_pairs": (3000 + 2 * text, 60, text),
    }
    memory, minutes, disk = asked.get(stage_of(rule), (2000, SHORTEST, 0))
    return Need(int(memory if rule in IN_MEMORY else min(memory, MOST_MB)), int(minutes), 1 + int(disk))


def load_of(project: Project, rule: str, wildcards: Wildcards) -> Load:
    """Return what a job works on."""
    return LOADS[rule](project, wildcards) if rule in LOADS else Load()


def file_priority(project: Project, source: str, name: str) -> float:
    """Return the priority of fetching a file, from 1 for the smallest down to 0: of files that wait, smaller ones come first."""
    return 1.0 / (1.0 + load_of(project, "fetch", {"source": source, "file": name}).text_mb)


def corpus_threads(project: Project, corpus: str) -> int:
    """Return the processes that a corpus' filters or reader get: more than one only where its own files, as published, keep them busy.

    Where a sample is drawn first, filters see few rows: more processes wait for the one that reads, unless languages are identified and
    that is declared to take longer than to read.
    """
    entry = project.corpora[corpus]
    parsed = entry.get("reader") in PARSING
    if project.stand_in or "source" not in entry or not (parsed or filters_of(project, corpus).difference(REMEMBERING)):
        return 1
    load = load_of(project, "build_corpus", {"corpus": corpus})
    costly = load.slowness > 1 and _filter_minutes(load) > _read_minutes(load)
    if drawn_first(project, corpus) and not (parsed or costly):
        return 1
    return FILTER_PROCESSES if files_mb(project, corpus, unpacked_by=1.0) > BUSY_MB else 1


def check_shares(project: Project) -> None:
    """Check that every corpus of `corpus_shards` is there, and one whose rows several jobs can filter.

    Raises:
        InputError: names the corpus, and says why not.
    """
    for corpus in project.settings["corpus_shards"]:
        where = f"config/config.yaml: corpus_shards.{corpus}"
        if corpus not in project.corpora:
            raise InputError(f"unknown corpus {corpus!r}", where=where, why=nearest(corpus, list(project.corpora)))
        if corpus_parts(project, corpus) and not drawn_first(project, corpus):
            why = "its rows are not sampled one by one as it is read: it keeps all rows, or a filter needs all of them"
            raise InputError(f"{corpus} cannot be shared among jobs", where=where, why=why, do="Leave it out")


def tokenising_threads(project: Project, examples: str) -> int:
    """Return the processes that tokenise a training set."""
    return TOKENISING if examples_mb(project, examples) > BUSY_TOKENISING_MB else 1


def uncapped_need(project: Project, rule: str, wildcards: Wildcards) -> Need:
    """Return what a job needs, whatever a cluster allows; as `job_need` takes it."""
    return _asked(rule, load_of(project, rule, wildcards))


def most_cpus(project: Project) -> int:
    """Return the CPUs beyond which no job of a run asks a cluster."""
    return int(project.settings.get("max_cpus", MOST_CPUS))


def most(project: Project) -> tuple[int, int]:
    """Return the memory (MB) and the time (minutes) beyond which no job of a run asks."""
    return int(project.settings.get("max_mem_mb", LARGEST_MB)), int(project.settings.get("max_runtime", LONGEST))


def job_need(project: Project, rule: str, wildcards: Wildcards, attempt: int) -> Need:
    """Return what one job asks for; every further attempt asks for as much again, up to the most that a cluster allows.

    Args:
        project: the configuration.
        rule: name of the rule.
        wildcards: of the job.
        attempt: 1 for the first.
    """
    first, (largest, longest) = uncapped_need(project, rule, wildcards), most(project)
    return Need(min(largest, first.mem_mb * attempt), max(SHORTEST, min(longest, first.runtime * attempt)), first.disk_mb * attempt)
