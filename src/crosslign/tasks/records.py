"""Score records: one metric each, as a fraction, with all that names it (PROTOCOLS F.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Record:
    """One metric of one evaluation.

    Attributes:
        eval: task id.
        subset: language, pair, named set or average.
        metric: name of the metric, such as `f1`, `accuracy`, `spearman`.
        value: a fraction (a correlation lies in [-1, 1]); None where it is undefined.
        direction: `xx2en`, `en2xx`, `mean`, or empty.
        protocol: which reading of the evaluation this is, or empty.
        n_items: how many items the value rests on.
        threshold: decision threshold, or None.
        threshold_from: where the threshold was tuned.
        main: whether this is the task's main score.
        ci_low, ci_high: 95 % interval of the value, or None.
        status: `undefined` where there is nothing to measure, `collapsed` where all vectors are alike.
        reason: why, in one clause, when status is not `ok`.
    """

    eval: str
    subset: str
    metric: str
    value: float | None
    n_items: int
    direction: str = ""
    protocol: str = ""
    threshold: float | None = None
    threshold_from: Literal["dev", "train", "same_gold", "none"] = "none"
    main: bool = False
    ci_low: float | None = None
    ci_high: float | None = None
    status: Literal["ok", "undefined", "collapsed"] = "ok"
    reason: str = ""
