"""What a figure shows, in words made from its numbers: what stands beside the pictures, what rose, where a line is highest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from crosslign.console import number_of
from crosslign.files.text import read_csv
from crosslign.reporting.figures._companions import COMPANIONS

Numbers = Sequence[Mapping[str, str]]
"""The lines of a figure's CSV."""


def seen_in(numbers: Path) -> str:
    """Return what we see in a figure; nothing for kinds whose numbers say no more than the picture.

    Args:
        numbers: its CSV.
    """
    columns, lines = read_csv(numbers)
    if companion := next((name for name in COMPANIONS if name in columns), ""):
        return _beside(companion, lines)
    if "at_zero" in columns:
        return _idle(lines)
    if "change" in columns:
        return _risen(lines)
    return _along(lines) if "x" in columns and "value" in columns else ""


def _beside(companion: str, lines: Numbers) -> str:
    """Say the number beside each system's picture."""
    values = {line["panel"]: float(line[companion]) for line in lines}
    found = COMPANIONS[companion]
    return f"{found.name.capitalize()}: {'; '.join(f'{panel} {found.printed(value)}' for panel, value in values.items())}."


def _idle(lines: Numbers) -> str:
    """Say which systems learn nothing, and why."""
    names = list(dict.fromkeys(line["system"] for line in lines if line["at_zero"]))
    if not names:
        return ""
    return (
        f"These rows learn nothing: {'; '.join(names)}. Their loss is 0.00 from the first step on, "
        "because the encoder already tells each positive from the other texts of its batch."
    )


def _risen(lines: Numbers) -> str:
    """Say in how many evaluations each system lies above its base."""
    counts: dict[str, dict[str, list[bool]]] = {}
    for line in lines:
        if line["change"]:
            counts.setdefault(line["against"], {}).setdefault(line["system"], []).append(float(line["change"]) > 0)
    said = {
        base: "; ".join(f"{system} in {sum(rises)} of {number_of(len(rises), 'evaluation')}" for system, rises in systems.items())
        for base, systems in counts.items()
    }
    return " ".join(f"Above {base}: {systems}." for base, systems in said.items())


def _along(lines: Numbers) -> str:
    """Say where a line starts and ends, and where it is highest."""
    known = [(100 * float(line["value"]), line["system"]) for line in lines if line["value"]]
    if len(known) < 2:
        return ""
    (first, start), (last, end), (top, best) = known[0], known[-1], max(known, key=lambda point: point[0])
    highest = f"highest at {best} with {top:.2f}" if top > min(value for value, _ in known) else "the same everywhere"
    return f"{first:.2f} at {start}, {last:.2f} at {end}; {highest}."
