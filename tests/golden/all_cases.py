"""All golden cases, by implementation."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import number_cases
import option_cases
import stage_cases
import text_cases
from golden import KEPT, Case

MAKERS = (
    text_cases.stand_ins,
    text_cases.readers,
    text_cases.evaluations,
    text_cases.filters,
    text_cases.views,
    text_cases.builders,
    number_cases.scorers,
    number_cases.terms,
    number_cases.formats,
    number_cases.backends,
    number_cases.translators,
    number_cases.figures,
    stage_cases.stages,
    option_cases.readouts,
    option_cases.trainings,
    option_cases.samples,
    option_cases.tables,
)
SLOW = (
    "reporting.figures/",
    "tasks.scorers/geometry",
    "tasks.scorers/clustering_purity",
    "views.",
    "corpora.evaluations/flores200",
    "corpora.evaluations/tatoeba",
    "encoders.formats/",
)
"""Beginnings of the names of those that take seconds each: `make test-all` checks them."""


def all_cases() -> dict[str, Callable[[], dict[str, Case]]]:
    """Return a function that gives the cases of an implementation, by its name."""
    found: dict[str, dict[str, Case]] = {}
    files = [(path.relative_to(KEPT).as_posix().partition("@")[0], path) for path in KEPT.rglob("*.json")]
    known = {(name, label) for name, path in files for label in json.loads(path.read_text(encoding="utf-8"))}
    for make in MAKERS:
        for name, label, case in make(known):
            found.setdefault(name, {})[label] = case
    return {name: partial(dict, cases) for name, cases in sorted(found.items())}
