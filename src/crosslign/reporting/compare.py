"""Two results folders side by side: which scores moved, by how much, and which input differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.errors import InputError
from crosslign.files import read_json
from crosslign.files.lineage import lineage_path

FACTS = ("recipe", "seed", "threads", "code", "versions")


@dataclass(frozen=True)
class Move:
    """One score that differs between two results folders.

    Attributes:
        file: score file, relative to both folders.
        record: subset, metric, direction and protocol.
        before, after: the values; None where undefined.
        significant: whether the 95 % intervals are apart; None where one has none.
    """

    file: str
    record: str
    before: float | None
    after: float | None
    significant: bool | None


def _records(path: Path) -> dict[str, Mapping[str, Any]]:
    keys = ("subset", "metric", "direction", "protocol")
    return {" ".join(filter(None, (str(r[key]) for key in keys))): r for r in read_json(path)["records"]}


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool | None:
    ends = [one.get("ci_low"), one.get("ci_high"), other.get("ci_low"), other.get("ci_high")]
    if any(end is None for end in ends):
        return None
    low, high, other_low, other_high = (float(end) for end in ends if end is not None)
    return low > other_high or high < other_low


def score_files(results: Path) -> set[str]:
    """Return the score files of a results folder, relative to it.

    Raises:
        InputError: there is no folder of scores.
    """
    folder = results / "scores"
    if not folder.is_dir():
        raise InputError("no scores here", where=str(folder), do="Give a results folder with its scale, such as results/laptop")
    return {path.relative_to(results).as_posix() for path in folder.rglob("*.json") if not path.name.endswith(".lineage.json")}


def moves(before: Path, after: Path) -> list[Move]:
    """Return every record that both folders have with different values."""
    found = []
    for file in sorted(score_files(before) & score_files(after)):
        old, new = _records(before / file), _records(after / file)
        for name in sorted(old.keys() & new.keys()):
            if old[name]["value"] != new[name]["value"]:
                found.append(Move(file, name, old[name]["value"], new[name]["value"], _apart(old[name], new[name])))
    return found


def first_differences(before: Path, after: Path, file: str) -> Iterator[str]:
    """Yield, for an artefact of both folders, what differs first on the way back: its own facts, else those of its inputs."""
    sidecars = [lineage_path(folder / file) for folder in (before, after)]
    if not all(sidecar.exists() for sidecar in sidecars):
        if any(sidecar.exists() for sidecar in sidecars):
            yield f"{file}: only one side has lineage"
        return
    old, new = (read_json(sidecar) for sidecar in sidecars)
    inputs = [{entry["path"]: entry["sha256"] for entry in lineage["inputs"]} for lineage in (old, new)]
    changed = [path for path in inputs[0] if path in inputs[1] and inputs[0][path] != inputs[1][path]]
    deeper = [difference for path in changed for difference in first_differences(before, after, path)]
    if deeper:
        yield from dict.fromkeys(deeper)
        return
    yield from (f"{path}: other bytes" for path in changed)
    yield from (f"{path}: on one side only" for path in sorted(inputs[0].keys() ^ inputs[1].keys()))
    yield from (f"{file}: {fact} differs" for fact in FACTS if old[fact] != new[fact])


def compare(before: Path, after: Path) -> str:
    """Return in words how the scores of two results folders differ, and the first inputs that differ behind them."""
    old, new = score_files(before), score_files(after)
    found = moves(before, after)
    lines = [f"{len(old & new)} score files on both sides, {len(old - new)} only before, {len(new - old)} only after"]
    if not found:
        return "\n".join([*lines, "no score differs"])
    for move in found:
        delta = "" if move.before is None or move.after is None else f"  {100 * (move.after - move.before):+.2f}"
        sign = {True: "  significant", False: "  within the intervals", None: ""}[move.significant]
        lines.append(f"{move.file}  {move.record}: {move.before!r} -> {move.after!r}{delta}{sign}")
    causes = dict.fromkeys(cause for file in dict.fromkeys(m.file for m in found) for cause in first_differences(before, after, file))
    return "\n".join([*lines, "", "what differs first:", *(f"  {cause}" for cause in causes)])
