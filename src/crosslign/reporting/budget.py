"""What the rows of a table asked of their encoders, checked against the budget that they share, and what their trials chose; printed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crosslign.config.budgets import TOLERANCE, off
from crosslign.config.resolve import CHOSEN
from crosslign.errors import InputError
from crosslign.paths import COUNTS
from crosslign.reporting.values import records_of

NOTE = (
    "Budget: each trained row took {:.3g} FLOPs of its encoder, with all that it starts from; the furthest, {}, {:+.2f} %. "
    "Tokens with gradient count three times, without once."
)


TUNED = "Tuned: each trained row took {} trials, beside this budget, judged by {}. Chosen: {}."


def _counts(resolved: Mapping[str, Any], results: Path) -> list[dict[str, Any]]:
    """Return the records of what stands behind a table's trained rows; none where it has no such rows."""
    there = any(resolved.get("spent", ()))
    return records_of(results / "scores" / COUNTS / f"{resolved['id']}.json") if there else []


def spent_flops(resolved: Mapping[str, Any], results: Path) -> list[list[float]]:
    """Return the FLOPs of each run of each row, with the runs that it starts from; empty for rows without training.

    Args:
        resolved: a table with a budget, as `crosslign.config.cells.resolve_table` gives it.
        results: the `{results}` folder.
    """
    flops = {record["protocol"]: float(record["value"]) for record in _counts(resolved, results) if record["metric"] == "flops"}
    return [[sum(flops[run] for run in chain) for chain in row] for row in resolved["spent"]]


def budget_note(resolved: Mapping[str, Any], results: Path) -> str:
    """Return what a table says of its budget; nothing where it has none.

    Raises:
        InputError: a row is off by more than a hundredth; names it, and what it took.
    """
    if "budget" not in resolved:
        return ""
    budget, labels = float(resolved["budget"]), [row["label"] for row in resolved["rows"]]
    spent = [(flops, label) for label, row in zip(labels, spent_flops(resolved, results), strict=True) for flops in row]
    if not spent:
        return ""
    furthest, label = max(spent, key=lambda one: abs(one[0] - budget))
    if off(furthest, budget):
        raise InputError(
            f"the row {label!r} is off the table's budget",
            where=f"table {resolved['id']}",
            why=f"it took {furthest:.4g} FLOPs of {budget:.4g}, and {TOLERANCE:.0%} is allowed",
            do="Take smaller batches, whose steps are finer, or a larger budget; a training that a guard stopped cannot be a row",
        )
    return NOTE.format(budget, label, 100 * (furthest / budget - 1))


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
        yield f"{place} " + ", ".join(f"{value:g} in {values[value]} of {len(of)} systems" for value in sorted(values))
