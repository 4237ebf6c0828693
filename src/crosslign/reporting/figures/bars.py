"""One value a system as horizontal bars, with 95 % intervals where the scores carry them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._style import PALETTE, save, subplots, write_numbers
from crosslign.reporting.values import find_record


@FIGURES.register
def draw(entry: Mapping[str, Any], inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw bars of one metric.

    Args:
        entry: `title`, and `task`, `subset`, `metric`, `protocol`, `direction` of the record.
        inputs: `panels`, a list of `label` and `scores` (one score file).
        out: png, svg, csv.
    """
    select = {key: entry[key] for key in ("task", "subset", "metric", "protocol", "direction") if key in entry}
    found = [(panel["label"], find_record(panel["scores"], select)) for panel in inputs["panels"]]
    figure, axis = subplots(figsize=(7, 0.45 * len(found) + 1.2))
    for index, (_, record) in enumerate(found):
        value = 0.0 if record["value"] is None else 100 * record["value"]
        axis.barh(index, value, color=PALETTE[0], height=0.65)
        if record["ci_low"] is not None:
            low, high = 100 * record["ci_low"], 100 * record["ci_high"]
            axis.plot([low, high], [index, index], color="#222222", linewidth=1.2)
        axis.text(value, index, f" {value:.1f}" if record["value"] is not None else f" – {record['reason']}", va="center", fontsize=8)
    axis.set_yticks(range(len(found)), [label for label, _ in found])
    axis.invert_yaxis()
    axis.set(title=entry["title"], xlabel=f"{entry['metric']} × 100", xlim=(0, None))
    save(figure, out)
    write_numbers(
        out["csv"], ("system", "value", "ci_low", "ci_high"), [(label, r["value"], r["ci_low"], r["ci_high"]) for label, r in found]
    )
