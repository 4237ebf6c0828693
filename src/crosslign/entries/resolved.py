"""What stages read: entries with every reference followed, as recipes and parameters of jobs hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from crosslign.entries.catalog import File, Readout
from crosslign.entries.papers import DevEvaluation, RecipePart, RecipeTerm, Table, Train


class AskedFile(File, total=False):
    """File as it is fetched: one that a source lists, or the beginning of one, with the name and size of that."""

    of: str
    head: int


class Start(TypedDict, total=False):
    """Start of a run: prepared encoders, by member, or a checkpoint of another run."""

    members: Mapping[str, str]
    run: str
    checkpoint: str


class RunRecipe(TypedDict):
    """Recipe of one run: what enters its parameters, its lineage and the trainer."""

    system: str
    run_id: str
    paper: str
    scale: str
    seed: int
    base: Start
    parts: Mapping[str, RecipePart]
    terms: list[RecipeTerm]
    train: Train
    select: Mapping[str, DevEvaluation]
    readout: Readout
    dev_readouts: Mapping[str, Mapping[str, Readout]]


class ResolvedCell(TypedDict, total=False):
    """Cell of a table: scores (a file a run) and what to select from them, parts, columns to average, a text, or why it is empty."""

    scores: list[str]
    select: Mapping[str, str]
    parts: list[ResolvedCell]
    total: bool
    mean_of: list[str]
    text: str
    reason: str


class Tuned(TypedDict):
    """Tuning of a row, and of all that it starts from: the number of its trials, and the dev evaluations that choose."""

    trials: int
    by: list[str]


class ResolvedTable(Table, total=False):
    """Table whose cells are resolved: the parameter of its rule.

    Beside its entry: which encoder stands for which at this scale (`encoders`), a list of cells for each row, and for each row the chains
    of runs that it spends on (`spent`).
    """

    id: str
    paper: str
    scale: str
    stand_in: bool
    encoders: Mapping[str, str]
    cells: list[list[ResolvedCell]]
    spent: list[list[list[str]]]
    tuned: Tuned
