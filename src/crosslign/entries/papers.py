"""Entries of the configuration as files have them, written by `python -m crosslign.config.entry_types papers`; do not edit.

Beside these keys, an entry holds the options of the implementation that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict


class Comparison(TypedDict, total=False):
    """Two rows of a table, and the columns in which they are compared."""

    table: Required[str]
    better: Required[str]
    worse: Required[str]
    columns: Required[list[str]]


class Base(TypedDict, total=False):
    """Start of the training."""

    encoder: str
    encoders: Mapping[str, str]
    system: str
    checkpoint: str


class RecipePart(TypedDict, total=False):
    """Named state that terms share, with the options of its kind."""

    kind: Required[str]
    learning_rate: float
    clip: float
    start_from: Literal["base", "encoder"]


class RecipeTerm(TypedDict, total=False):
    """A weighted term of the loss, with the options of its objective."""

    objective: Required[str]
    weight: float
    examples: Required[str]
    batch: Required[int]
    micro_batch: int


class Guards(TypedDict, total=False):
    """Guards that end or mark a failing run."""

    not_finite: Literal["fail", "stop", "mark"]
    constant_prediction: Literal["fail", "stop", "mark", "off"]
    embedding_collapse: Literal["fail", "stop", "mark", "off"]
    rank_1_empty: Literal["fail", "stop", "mark", "off"]
    left_out: int
    every: int
    patience: int
    after: int
    cosine: float
    rank: float
    rank_1_share: float
    rank_1_steps: int


class Train(TypedDict, total=False):
    """Length, learning rate and other settings of the training."""

    epochs: float
    steps: int
    budget: float
    learning_rate: float
    schedule: Literal["linear", "cosine", "constant"]
    final_share: float
    warmup_steps: int
    warmup_share: float
    weight_decay: float
    decayed: Literal["matrices", "all"]
    clip: float
    dropout: float
    precision: Literal["fp32", "bf16", "fp16"]
    max_length: int
    threads: int
    checkpoint_minutes: int
    checkpoint_every: int
    group_by_length: bool
    batch_tokens: int
    auto_micro_batch: bool
    memory_mb: int
    tensorboard: bool
    guards: Guards
    betas: list[float]
    epsilon: float


class DevEvaluation(TypedDict, total=False):
    """A dev evaluation that selects a checkpoint."""

    task: Required[str]
    subset: Required[str]
    metric: Required[str]
    protocol: str
    direction: str
    every: Required[int | Literal["epoch"]]
    keep: bool


class TunedBy(TypedDict, total=False):
    """The dev evaluation after a trial's last step."""

    task: Required[str]
    subset: Required[str]
    metric: Required[str]
    protocol: str
    direction: str


class Tune(TypedDict, total=False):
    """Values to try before the system is trained."""

    values: Mapping[str, list[float]]
    trials: int
    seed: int
    by: TunedBy


class Recipe(TypedDict, total=False):
    """Recipe of a system or a fine-tune."""

    place: str
    base: Base
    like: str
    parts: Mapping[str, RecipePart]
    terms: list[RecipeTerm]
    train: Train
    select: Mapping[str, DevEvaluation]
    checkpoint: str | Mapping[str, str]
    tune: Tune
    gpu_hours: float
    readout: str
    seeds: list[int]


View = TypedDict(
    "View",
    {
        "builder": "Required[str]",
        "from": "Required[list[str]]",
        "seed": "int",
    },
    total=False,
)


TrainingSet = TypedDict(
    "TrainingSet",
    {
        "builder": "Required[str]",
        "from": "list[str]",
        "of": "list[str]",
        "teacher": "str",
        "langs": "list[str]",
        "seed": "int | Literal['run']",
        "decontaminate": "list[str]",
        "decontaminate_by": "Literal['side', 'pair']",
    },
    total=False,
)


class Print(TypedDict, total=False):
    """Format of cells, and the test that marks them."""

    decimals: int
    scale_by: float
    std: Literal["sample", "population"]
    significance: Literal["paired_bootstrap", "paired_t"]
    level: float
    ties: bool
    latex: list[str]
    gaps: Literal["mark"]


class Column(TypedDict, total=False):
    """Column of a table."""

    group: str
    label: Required[str]
    task: str
    subset: str
    metric: str
    protocol: str
    direction: str
    finetune: str
    readout: str
    length: int
    checkpoint: str
    better: Literal["higher", "lower"]
    reason: str
    decimals: int
    scale_by: float
    count: str
    of: str
    setting_of: str
    variant: str
    mean_of: list[str] | list[Mapping[str, Any]]
    published: Mapping[str, Any]


class Counted(TypedDict, total=False):
    """What a column of counts counts in a row."""

    corpora: list[str]
    examples: list[str]
    count: str
    subset: str
    metric_of: str
    reason: str


class Row(TypedDict, total=False):
    """Row of a table."""

    group: str
    label: Required[str]
    system: str
    protocol: str
    direction: str
    readout: str
    length: int
    columns: Mapping[str, Mapping[str, Any]]
    published: str | Mapping[str, Any]
    data: Mapping[str, Counted]
    against: str
    setting: str
    reason: str


class Footnote(TypedDict, total=False):
    """Footnote of a table, a row, a column or a cell."""

    id: str
    at: Mapping[str, Any]
    text: Required[str]
    measures_other: bool


class Table(TypedDict, total=False):
    """A table."""

    title: Required[str]
    caption: str
    on_request: bool
    published_from: str
    readout: str
    length: int
    budget: float
    seeds: list[int]
    print: Print
    columns: Required[list[Column]]
    rows: Required[list[Row]]
    footnotes: list[Footnote]


class Claim(TypedDict, total=False):
    """A statement of a paper that one thing is better than another."""

    says: Required[str]
    place: Required[str]
    published: float
    own: Comparison
    equal: Comparison
    equal_other: Comparison
    could_explain: str


class FigureCell(TypedDict, total=False):
    """An evaluation that bars show, or lines average."""

    label: str
    task: Required[str]
    subset: Required[str]
    metric: Required[str]
    protocol: str
    direction: str


Figure = TypedDict(
    "Figure",
    {
        "kind": "Required[Literal['tsne', 'bars', 'lines', 'heatmap', 'curves', 'nearest', 'pair_cosines']]",
        "title": "Required[str]",
        "caption": "str",
        "from": "Required[list[str]]",
        "companion": "Literal['neighbour_rate', 'mean_cosine']",
        "labels": "list[str]",
        "against": "list[str]",
        "against_labels": "list[str]",
        "seen": "list[str]",
        "text_set": "str",
        "readout": "str",
        "length": "int",
        "checkpoint": "str",
        "split": "str",
        "groups": "int",
        "perplexity": "float",
        "marked": "list[int]",
        "aspects": "list[Literal['invariance', 'canonical_form', 'isotropy']]",
        "top": "int",
        "places": "list[str]",
        "x": "list[float]",
        "x_label": "str",
        "cells": "list[FigureCell]",
    },
    total=False,
)


class MinedSide(TypedDict, total=False):
    """One of two files to mine."""

    file: Required[str | list[str]]
    lang: Required[str]
    column: str
    split: bool


class Mining(TypedDict, total=False):
    """Sentence pairs to mine from two files."""

    system: str
    allow_tiny: bool
    checkpoint: str
    readout: str
    source: Required[MinedSide]
    target: Required[MinedSide]
    dedup: Literal["text", "id"]
    k: int
    margin: Literal["ratio", "distance", "absolute"]
    retrieval: Literal["fwd", "bwd", "intersect", "max"]
    threshold: float | None
    plants: Mapping[str, Any]
    precision: float | None
    recall: float | None
    output: Literal["all", "above_threshold"]
    embeddings: Literal["float32", "float16"]
    backend: Literal["exact", "faiss_flat", "faiss_ivf_pq"]
    search_options: Mapping[str, Any]
    shards: int
    threads: int
    licence: str


class Keep(TypedDict, total=False):
    """What to keep that is otherwise removed after use."""

    embeddings: bool


class Settings(TypedDict, total=False):
    """Settings of a run, defaults included."""

    scale: str
    results: str
    mirror: str | list[str]
    seeds: list[int]
    gpus: int
    kernels: Literal["auto", "off", "on", True, False]
    keep: Keep
    max_runtime: int
    max_cpus: int
    max_mem_mb: int
    papers: list[str]
    plugins: list[str]
    sizes: Mapping[str, str]
    corpus_shards: Mapping[str, int]
    targets: list[str]
    mine: Mapping[str, Mining]
