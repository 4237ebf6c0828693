"""Entries of the configuration as files have them, written by `python -m crosslign.config.entry_types catalog`; do not edit.

Beside these keys, an entry holds the options of the implementation that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict


class File(TypedDict, total=False):
    """A file of a source, with size and checksum as published."""

    name: Required[str]
    path: str
    sha256: str
    bytes: int
    about_bytes: int


class Source(TypedDict, total=False):
    """Origin of bytes."""

    package: str
    version: str
    url: str
    local: str
    opus: str
    api: str
    hub: str
    github: str
    folder: str
    urls: list[str]
    connections: int
    revision: str
    repo_type: Literal["dataset", "model"]
    name: str
    split: str
    rows: int
    each: Mapping[str, Any]
    files: list[File]
    files_from: str
    stand_in: str
    licence: Required[str]
    how: str
    citation: str
    evidence: str


Corpus = TypedDict(
    "Corpus",
    {
        "kind": "Required[Literal['mono', 'bitext', 'multiway', 'labelled', 'evaluation']]",
        "each": "Mapping[str, Any]",
        "source": "str",
        "files": "list[str]",
        "from": "list[str]",
        "of": "list[str]",
        "reader": "str",
        "options": "Mapping[str, Any]",
        "langs": "Required[list[str]]",
        "labels": "list[str]",
        "head": "str",
        "evidence": "str",
        "whole": "bool",
        "sample": "int",
        "share": "float",
        "seed": "int",
        "expect_none": "list[str]",
        "licence": "str",
        "citation": "str",
        "access": "Literal['open', 'manual', 'withdrawn']",
        "filters": "list[Mapping[str, Any]]",
    },
    total=False,
)


class Prune(TypedDict, total=False):
    """Drop the pieces that these corpora never use; text made of kept pieces keeps its vectors exactly."""

    corpora: Required[list[str]]
    prefixes: list[str]


class Construct(TypedDict, total=False):
    """A small encoder with random weights, for checks."""

    architecture: Required[Literal["bert"]]
    layers: Required[int]
    hidden: Required[int]
    heads: Required[int]
    intermediate: Required[int]
    vocabulary: Required[int]
    seed: Required[int]


class Encoder(TypedDict, total=False):
    """A base encoder, also a system without training."""

    source: str
    member: str
    format: Literal["e5s1", "laser", "torch_weights", "transformers_folder"]
    hub: str
    parameters_m: float
    revision: str
    model_class: Literal["bert"]
    prune: Prune
    path: str
    construct: Construct
    readout: Required[str]
    longest: int
    normalises: bool
    licence: Required[str]
    citation: str


class Whitening(TypedDict, total=False):
    """Vectors are shifted and turned so that those of an evaluation corpus have no mean and a covariance of one (Su et al."""

    of: Required[str]
    text_set: Required[str]
    dimensions: Required[int]


class Readout(TypedDict, total=False):
    """Embedding settings."""

    pooling: Required[Literal["cls", "cls_before_mlp", "mean", "mean_no_special", "max", "last", "avg_first_last", "pooler"]]
    layer: Required[int]
    max_length: Required[int]
    normalise: Required[bool]
    precision: Required[Literal["fp32", "tf32", "bf16", "fp16"]]
    score_change: str
    prefix: Required[str]
    whitening: Whitening
    prefixes: Mapping[str, str]


class MainRecord(TypedDict, total=False):
    """The record that stands for the task."""

    metric: Required[str]
    subset: Required[str]
    protocol: str
    direction: str


class Task(TypedDict, total=False):
    """An evaluation, with the options of its scorer."""

    scorer: Required[str]
    texts: Required[Mapping[str, str]]
    output: Required[Literal["vectors", "logits"]]
    splits: Mapping[str, str]
    main: Required[MainRecord]
    averages: Mapping[str, str | list[str] | Mapping[str, Any]]
    readout: str
    lengths: Mapping[str, int]
    prefixes: Mapping[str, str]
    normalise: bool
    footnote: str


class Limits(TypedDict, total=False):
    """Upper limits of the recipes' sizes."""

    corpus_rows: int
    example_rows: int
    evaluation_items: int
    steps: int
    budget_share: float
    batch: int
    queue: int
    every: int
    seeds: int
    checkpoint_every: int


class Scale(TypedDict, total=False):
    """A scale."""

    encoders: Required[Mapping[str, str]]
    limits: Required[Limits]
    learning_rate: Required[float | None]
    gpus: int
    expected_seconds: Mapping[str, float]
    sources: Required[Literal["real", "stand_in"]]
