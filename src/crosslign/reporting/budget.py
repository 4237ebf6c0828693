"""What the rows of a table asked of their encoders: checked against the budget that they share, and printed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.config.budgets import TOLERANCE, off
from crosslign.errors import InputError
from crosslign.paths import COUNTS
from crosslign.reporting.values import records_of

NOTE = (
    "Budget: each trained row took {:.3g} FLOPs of its encoder, with all that it starts from; the furthest, {}, {:+.2f} %. "
    "Tokens with gradient count three times, without once."
)


def spent_flops(resolved: Mapping[str, Any], results: Path) -> list[list[float]]:
    """Return the FLOPs of each run of each row, with the runs that it starts from; empty for rows without training.

    Args:
        resolved: a table with a budget, as `crosslign.config.cells.resolve_table` gives it.
        results: the `{results}` folder.
    """
    if not any(resolved["spent"]):
        return [[] for _ in resolved["spent"]]
    records = records_of(results / "scores" / COUNTS / f"{resolved['id']}.json")
    flops = {record["protocol"]: float(record["value"]) for record in records if record["metric"] == "flops"}
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
