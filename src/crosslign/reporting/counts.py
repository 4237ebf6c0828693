"""Counts of corpora, evaluation corpora and training sets, read from lineage, as records of a score file; notes on budget and tuning."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.config.budgets import ALLOWED, off
from crosslign.config.cells import SYSTEMS
from crosslign.config.resolve import CHOSEN
from crosslign.console import number_of
from crosslign.entries.resolved import ResolvedTable
from crosslign.errors import InputError
from crosslign.files import write_json
from crosslign.files.lineage import lineage_path, sidecar_if_there
from crosslign.paths import COUNTS
from crosslign.tasks.records import records_of

Count = tuple[str, str, float]
"""(metric, subset, value)"""
ESTIMATED = ("read", "read_bytes", "kept")
"""Counts that reading the whole files would change, in the measure of their bytes."""
ESTIMATE = "An estimate: rows counted in the beginning of each archive, scaled to the size of the archive."
BUDGET = (
    "Budget: each trained row has {:.3g} FLOPs of its encoder, including everything that it starts from; a token with gradient counts "
    "three times, one without counts once. Used, in percent (smallest to largest of a row's runs): {}. A training ends at the step nearest "
    "to its budget, so a row may be off by " + ALLOWED + "."
)
TUNED = "Tuning: {} trials for each trained row, in addition to its budget, judged by {}. Chosen: {}."


def write_counts(rows: Mapping[str, Mapping[str, Path]], out: Path) -> int:
    """Write the records of everything that a table counts.

    Args:
        rows: rows of each artefact, with lineage beside them, by what it is (`corpora`, `examples`, `systems`) and its id; these become
            `direction` and `protocol` of its records.
        out: the file to write.

    Returns:
        The number of records.

    Raises:
        InputError: rows without lineage.
    """
    records: list[dict[str, Any]] = []
    for kind, name, path in ((kind, name, path) for kind, named in rows.items() for name, path in named.items()):
        if not (lineage := sidecar_if_there(lineage_path(path))):
            raise InputError("its rows cannot be counted", where=str(path), why="it has no lineage", do="Build it with Snakemake")
        counts = lineage["counts"]
        if kind == SYSTEMS and "encoded" not in counts:
            what, do = "what this run encoded was not counted", "Train it again: delete its folder, and run Snakemake"
            raise InputError(what, where=str(path), why="an earlier version trained it", do=do)
        fixed = {
            "run_id": name,
            "eval": COUNTS,
            "protocol": name,
            "direction": kind,
            "n_items": counts["rows" if "rows" in counts else "steps"],
            "status": "ok",
            "reason": "",
        }
        for metric, subset, value in _counted(counts):
            estimated = "head" in counts and metric in ESTIMATED
            share = counts["head"]["of"] / counts["head"]["bytes"] if estimated else 1
            said = {"note": ESTIMATE, "estimated": True} if estimated else {}
            records.append({**fixed, "metric": metric, "subset": subset, "value": value * share, **said})
    write_json(out, {"records": records})
    return len(records)


def _kept(read: int, steps: Sequence[Mapping[str, Any]], whole: int) -> int:
    """Return how many rows filters leave: an estimate by the shares that pass, for those that saw only rows which could be drawn."""
    kept = float(steps[whole - 1]["after"] if whole else read)
    for step in steps[whole:]:
        kept *= step["after"] / step["before"] if step["before"] else 0.0
    return round(kept)


def _counted(counts: Mapping[str, Any]) -> Iterator[Count]:
    """Yield every count of a lineage, of a run what it encoded and what its trials chose.

    Of counts by subset there are `least`, `most` and `subsets` (their number), too.
    """
    for metric in ("read", "read_bytes", "rows", "groups"):
        if isinstance(counts.get(metric), int):
            left_out = sum(counts.get("left_out", {}).values()) if metric == "read" else 0  # what was read is what was published
            yield metric, "all", counts[metric] + left_out
    if "encoded" in counts:
        yield from ((metric, "all", value) for metric, value in counts["encoded"].items())
        yield from ((f"{CHOSEN}.{place}", "all", value) for place, value in counts.get(CHOSEN, {}).items())
        return
    yield "languages", "all", len(counts.get("per_language", {}))
    if counts.get("groups"):
        yield "rows_per_group", "all", counts["rows"] / counts["groups"]
    if "read" in counts:
        steps = counts.get("filters", [])
        yield "kept", "all", _kept(counts["read"], steps, counts.get("seen_whole", len(steps)))
    labels = counts.get("labels", {})
    rows = {**counts.get("per_corpus", {}), **counts.get("rows_per_language", {}), **labels.get("rows", {})}
    tables = {"sentences": counts.get("per_language", {}), "rows": rows, "groups": labels.get("groups", {}), **counts.get("sizes", {})}
    for name, table in tables.items():
        yield from ((name, subset, value) for subset, value in table.items())
    for name, table in counts.get("sizes", {}).items():
        yield from ((name, "least", min(table.values())), (name, "most", max(table.values())), (name, "subsets", len(table)))
    for lang, words in counts.get("words", {}).items():
        yield "words_per_sentence", lang, words / counts["per_language"][lang]


def _counts(resolved: ResolvedTable, results: Path) -> list[dict[str, Any]]:
    """Return the records of what stands behind a table's trained rows; none where it has no such rows."""
    there = any(resolved.get("spent", ()))
    return records_of(results / "scores" / COUNTS / f"{resolved['id']}.json") if there else []


def _spent(resolved: ResolvedTable, results: Path) -> list[list[tuple[float, float]]]:
    """Return of each run of each row its FLOPs and those of its mean step, both with the runs that it starts from."""
    runs = {record["protocol"]: record for record in _counts(resolved, results) if record["metric"] == "flops"}
    flops = {run: float(record["value"]) for run, record in runs.items()}
    step = {run: flops[run] / record["n_items"] for run, record in runs.items()}
    return [[(sum(flops[run] for run in chain), sum(step[run] for run in chain)) for chain in row] for row in resolved["spent"]]


def _share(runs: list[tuple[float, float]], budget: float) -> str:
    """Return what a row's runs took, in percent of a budget: one figure where they took the same."""
    shares = sorted(flops / budget for flops, _ in runs)
    return " to ".join(dict.fromkeys(f"{100 * share:.1f}" for share in (shares[0], shares[-1])))


def budget_note(resolved: ResolvedTable, results: Path, names: Sequence[str]) -> str:
    """Return what a table with a budget says of it, and of what each row took; nothing where none was trained.

    Args:
        resolved: the table, as `crosslign.config.cells.resolve_table` gives it.
        results: the `{results}` folder.
        names: of its rows.

    Raises:
        InputError: a row is off by more than is allowed (`crosslign.config.budgets.off`); names it, and what it took.
    """
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
    return BUDGET.format(budget, "; ".join(f"{name} {_share(runs, budget)}" for name, runs in trained)) if trained else ""


def tuning_note(resolved: ResolvedTable, results: Path) -> str:
    """Return how often which values were chosen for the systems of a table that has tuned ones."""
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
