"""Counts of corpora, evaluation corpora and training sets, read from lineage, as records of a score file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.config.cells import SYSTEMS
from crosslign.config.resolve import CHOSEN
from crosslign.errors import InputError
from crosslign.files import write_json
from crosslign.files.lineage import lineage_path, sidecar_if_there
from crosslign.paths import COUNTS

Count = tuple[str, str, float]
"""(metric, subset, value)"""
ESTIMATED = ("read", "read_bytes", "kept")
"""Counts that reading the whole files would change, in the measure of their bytes."""
ESTIMATE = "An estimate: rows counted in the beginning of each archive, scaled to the size of the archive."


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
