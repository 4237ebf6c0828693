"""Score records: one metric each, as a fraction, with all that names it (docs/protocols.md)."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from crosslign.errors import InputError

SHARES = {"accuracy", "f1", "precision", "recall", "map", "mrr", "purity", "error_rate", "recall_cap", "exact_match", "top1_in_gold"}
SHARES |= {"isotropy", "isotropy_low", "isotropy_high"}
SIGNED = {"spearman", "pearson", "kendall", "cosine"}
AT = re.compile(r"(_at_|@)\d+$")
ROUNDING = 1e-9


def bounds_of(metric: str) -> tuple[float, float]:
    """Return the least and the greatest value that a metric can have, by its name: `macro_f1` and `map_at_20` are shares."""
    name = AT.sub("", metric)
    names = {name, name.rpartition("_")[2]}
    if names & SHARES:
        return 0.0, 1.0
    return (-1.0, 1.0) if names & SIGNED else (-math.inf, math.inf)


def check_value(record: Mapping[str, Any], where: str) -> None:
    """Refuse a score that its metric cannot have.

    Args:
        record: `metric`, `value`, `ci_low` and `ci_high`, and `eval` and `subset` for the message; None is undefined, and passes.
        where: the score file.

    Raises:
        InputError: what is no finite number (a truth value, a text), or a value beyond the bounds of the metric.
    """
    low, high = bounds_of(str(record["metric"]))
    for key, least, most in (("value", low, high), ("ci_low", -math.inf, math.inf), ("ci_high", -math.inf, math.inf)):
        found = record.get(key)
        number = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= sys.float_info.max
        if found is not None and not (number and least - ROUNDING <= found <= most + ROUNDING):
            raise InputError(
                f"{record['metric'] if key == 'value' else key} is {repr(found)[:40]}",
                where=f"{where}: {record['eval']}/{record['subset']}",
                why=f"it lies between {least:g} and {most:g}" if number else "it is a finite number",
                do="Delete the score file, so that the next run makes it again; report it if it comes back",
            )


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
        n_items: how many items the value depends on.
        threshold: decision threshold, or None.
        threshold_from: where the threshold was tuned.
        main: whether this is the task's main score.
        ci_low, ci_high: 95 % interval of the value, or None.
        status: `undefined` where there is nothing to measure, `collapsed` where all vectors are alike.
        reason: why, in one clause, when status is not `ok`.
        note: what else a table is to say of the value, in a footnote; a score file leaves an empty one out.
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
    note: str = ""
