"""Learning-rate schedules: a multiplier of the peak, as a function of the step alone."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, cos, pi
from typing import Any, Final

SCHEDULES: Final = ("linear", "cosine", "constant")


def multiplier(schedule: str, step: int, steps: int, warmup: int = 0, final_share: float = 0.0) -> float:
    """Return the factor of the peak learning rate at one step.

    Args:
        schedule: `linear` and `cosine` decay to `final_share` of it at the end, `constant` does not decay.
        step: optimiser step, from 0.
        steps: steps in total.
        warmup: steps of linear warm-up from 0.
        final_share: of the peak, what `linear` and `cosine` end at.
    """
    if step < warmup:
        return step / warmup
    if schedule == "constant":
        return 1.0
    left = max(0.0, (steps - step) / max(1, steps - warmup))
    if schedule == "linear":
        return final_share + (1.0 - final_share) * left
    if schedule == "cosine":
        return final_share + (1.0 - final_share) * 0.5 * (1.0 + cos(pi * (1.0 - left)))
    raise ValueError(f"schedule {schedule!r} is none of {SCHEDULES}")


def warmup_of(train: Mapping[str, Any], steps: int) -> int:
    """Return the steps of warm-up of a run of so many steps: `warmup_share` of them, rounded up, or `warmup_steps`."""
    share = train.get("warmup_share")
    return ceil(round(share * steps, 6)) if share is not None else int(train.get("warmup_steps", 0))


def total_steps(rows: int, batch: int, epochs: float | None, steps: int | None) -> int:
    """Return the optimiser steps of a run.

    Args:
        rows: examples of the first term; a last incomplete batch is a step.
        batch: examples a step.
        epochs: passes over the examples, or None.
        steps: upper bound, or None; without both it is one epoch.
    """
    epochs = epochs if epochs is not None else (None if steps else 1.0)
    whole = ceil(round(epochs * ceil(rows / batch), 6)) if epochs is not None else steps  # 1.1 * 50 is a little more than 55
    assert whole is not None
    return min(whole, steps) if steps else whole
