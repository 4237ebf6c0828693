"""What a calibration says of mined pairs, on the console: what is expected of them, and what the plants cannot tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from crosslign.console import as_columns, number_of

SHOWN = 8
"""Thresholds of the curve that are shown, about."""
RULE_OF_THREE = 3.0
"""Of p plants without one false find, up to 3 / p of all sentences may be falsely found (95 %)."""


def _share(ends: list[float]) -> str:
    return f"{ends[1]:.3f} ({ends[0]:.3f}-{ends[2]:.3f})"


def _spread(records: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return some records of a curve, at about equal steps of pairs."""
    step = records[-1]["pairs"] / SHOWN
    found: list[Mapping[str, Any]] = []
    for record in records:
        if not found or record["pairs"] - found[-1]["pairs"] >= step or record is records[-1]:
            found.append(record)
    return found


def _limits(calibration: Mapping[str, Any], chosen: Mapping[str, Any], precision: float | None) -> Iterator[str]:
    """Yield what the plants cannot tell of a threshold."""
    used, larger = calibration["plants"]["used"], max(calibration["sides"])
    floor = RULE_OF_THREE * larger / (used * chosen["pairs"])
    if precision is not None and chosen["precision"][0] < precision:
        yield f"{number_of(used, 'plant')} are too few to tell a precision of {precision} from {chosen['precision'][0]:.3f}"
    asked = precision or chosen["precision"][1]
    if floor > 1 - asked and asked < 1:
        needed = math.ceil(RULE_OF_THREE * larger / (chosen["pairs"] * (1 - asked)))
        yield (
            f"with {number_of(larger, 'sentence')} and {number_of(chosen['pairs'], 'pair')}, "
            f"{number_of(used, 'plant')} without a false find still allow a precision "
            f"as low as {max(0.0, 1 - floor):.3f}; for {asked:.3g}, use {number_of(needed, 'plant')} or more"
        )


def calibration_lines(calibration: Mapping[str, Any], precision: float | None, threshold: float | None) -> Iterator[str]:
    """Yield what is expected of the pairs by threshold, of those above the chosen one, and what cannot be told.

    Args:
        calibration: record of `calibrate`.
        precision: what was asked for, if anything.
        threshold: of the pairs that were kept; None where all were.
    """
    plants, records = calibration["plants"], calibration["curve"]
    left_out = f"left out: {plants['in_the_sides']:,} that are in the sides, {plants['repeated']:,} repeated"
    yield f"{plants['used']:,} of {number_of(plants['given'], 'known pair')} were hidden in the sides ({left_out})"
    if not records:
        return
    low, middle, high = calibration["translations"]
    yield f"sentences with a translation in the other side: about {middle:,} ({low:,}-{high:,})"
    rows = [(f"{row['threshold']:.4f}", f"{row['pairs']:,}", _share(row["precision"]), _share(row["recall"])) for row in _spread(records)]
    head = ("score ≥", "pairs", "precision (95 %)", "recall (95 %)")
    yield from ("  " + line for line in as_columns([head, *rows], right=(0, 1, 2, 3)))
    chosen = _at(records, threshold)
    yield (
        f"expected for {number_of(chosen['pairs'], 'pair')} with score ≥ {chosen['threshold']:.4f}: "
        f"precision {_share(chosen['precision'])}, recall {_share(chosen['recall'])}"
    )
    yield from _limits(calibration, chosen, precision)
    yield "this holds for text like the plants; translations within a side, and pairs that differ in a detail, count as false"
    if calibration["unlike"]:
        apart = ", ".join(f"{name} (distance {value:.2f})" for name, value in calibration["unlike"].items())
        yield f"WARNING: the plants are a different kind of text from the sides: {apart}"
        yield "Do not rely on these intervals; use plants like the text of the sides"


def _at(records: list[Mapping[str, Any]], threshold: float | None) -> Mapping[str, Any]:
    """Return the record of the lowest threshold that is not below one; the last where none is."""
    if threshold is None:
        return records[-1]
    return next((record for record in reversed(records) if record["threshold"] >= threshold), records[0])
