"""What the rows of a table asked of their encoders, checked against the budget that they share, and what their trials chose; printed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.config.budgets import ALLOWED, off
from crosslign.config.resolve import CHOSEN
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.paths import COUNTS
from crosslign.tasks.records import records_of

NOTE = (
    "Budget: each trained row has {:.3g} FLOPs of its encoder, including everything that it starts from; a token with gradient counts "
    "three times, one without counts once. Used, in percent (smallest to largest of a row's runs): {}. A training ends at the step nearest "
    "to its budget, so a row may be off by " + ALLOWED + "."
)
TUNED = "Tuning: {} trials for each trained row, in addition to its budget, judged by {}. Chosen: {}."


def _counts(resolved: Mapping[str, Any], results: Path) -> list[dict[str, Any]]:
    """Return the records of what stands behind a table's trained rows; none where it has no such rows."""
    there = any(resolved.get("spent", ()))
    return records_of(results / "scores" / COUNTS / f"{resolved['id']}.json") if there else []


def _spent(resolved: Mapping[str, Any], results: Path) -> list[list[tuple[float, float]]]:
    """Return of each run of each row its FLOPs and those of its mean step, both with the runs that it starts from."""
    runs = {record["protocol"]: record for record in _counts(resolved, results) if record["metric"] == "flops"}
    flops = {run: float(record["value"]) for run, record in runs.items()}
    step = {run: flops[run] / record["n_items"] for run, record in runs.items()}
    return [[(sum(flops[run] for run in chain), sum(step[run] for run in chain)) for chain in row] for row in resolved["spent"]]


def _share(runs: list[tuple[float, float]], budget: float) -> str:
    """Return what a row's runs took, in percent of a budget: one figure where they took the same."""
    shares = sorted(flops / budget for flops, _ in runs)
    return " to ".join(dict.fromkeys(f"{100 * share:.1f}" for share in (shares[0], shares[-1])))


def budget_note(resolved: Mapping[str, Any], results: Path, names: Sequence[str]) -> str:
    """Return what a table says of its budget, and of what each row took; nothing where it has none.

    Args:
        resolved: the table, as `crosslign.config.cells.resolve_table` gives it.
        results: the `{results}` folder.
        names: of its rows.

    Raises:
        InputError: a row is off by more than is allowed (`crosslign.config.budgets.off`); names it, and what it took.
    """
    if "budget" not in resolved:
        return ""
    budget = float(resolved["budget"])
    trained = [(name, runs) for name, runs in zip(names, _spent(resolved, results), strict=True) if runs]
    for name, flops, step in ((name, *run) for name, runs in trained for run in runs):
        if off(flops, budget, step):
            raise InputError(
                f"the row {name!r} does not have the table's budget",
                where=f"table {resolved['id']}",
                why=f"it took {flops:.4g} FLOPs of {budget:.4g}; the allowed difference is {ALLOWED} ({step:.2g} FLOPs)",
                do="A training that a guard stopped cannot be a row: see `guards` in its lineage, remove the cause, and train again",
            )
    return NOTE.format(budget, "; ".join(f"{name} {_share(runs, budget)}" for name, runs in trained)) if trained else ""


def tuning_note(resolved: Mapping[str, Any], results: Path) -> str:
    """Return how often which values were chosen for the tuned systems of a table; nothing where none is tuned."""
    if "tuned" not in resolved:
        return ""
    chosen: dict[str, dict[str, float]] = defaultdict(dict)
    for record in _counts(resolved, results):
        where, _, place = record["metric"].partition(".")
        if where == CHOSEN:
            chosen[place][record["protocol"].rpartition("-s")[0]] = record["value"]
    return TUNED.format(resolved["tuned"]["trials"], ", ".join(resolved["tuned"]["by"]), "; ".join(_how_often(chosen)))


def _how_often(chosen: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield, for each place in recipes, its values with the number of systems that they were chosen for."""
    for place, of in sorted(chosen.items()):
        values = Counter(of.values())
        yield f"{place} " + ", ".join(f"{value:g} in {values[value]} of {number_of(len(of), 'system')}" for value in sorted(values))
