"""The choice among the trials of a tuned system, by their scores on a dev evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.config.trials import DEV
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files import write_json
from crosslign.files.text import read_json


def write_choice(recipe: Mapping[str, Any], folders: Mapping[str, Path], out: Path) -> dict[str, Any]:
    """Choose the values of the trial with the highest score after its last step, of equal ones the first, and write them down.

    Args:
        recipe: `system`, `by` (the dev evaluation), `trials`: values by their place in the recipe, of each run.
        folders: of the trials' runs.
        out: the JSON: `system`, `by`, `chosen` (values by their place), `run` (the trial's), `trials` with values and score.

    Returns:
        Counts for the lineage: `trials`, `scored`, `chosen`.

    Raises:
        InputError: no trial has a score.
    """
    trials = []
    for run, values in recipe["trials"].items():
        evaluations = read_json(folders[run] / "selection.json")["looks"]
        trials.append({"run": run, "values": values, "score": evaluations[-1]["scores"].get(DEV) if evaluations else None})
    scored = [trial for trial in trials if trial["score"] is not None]
    if not scored:
        why, do = (
            f"none of its {number_of(len(trials), 'trial')} has a score on {recipe['by']['task']}",
            "Try smaller values: `tune: values:`",
        )
        raise InputError(f"no values can be chosen for {recipe['system']}", where=str(out), why=why, do=do)
    best = max(scored, key=lambda trial: float(trial["score"]))
    said = {"system": recipe["system"], "by": recipe["by"], "chosen": best["values"], "run": best["run"], "trials": trials}
    write_json(out, said)
    return {"trials": len(trials), "scored": len(scored), "chosen": best["values"]}
