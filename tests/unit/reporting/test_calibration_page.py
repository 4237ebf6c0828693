"""All ten figures of the calibration page: as published, with gaps that add up, within the tolerance that the page states."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from crosslign.paths import CATALOG

ROOT = Path(__file__).resolve().parents[3]
TOLERANCE = {"swh": 2.0}
"""As in tests/workflow/test_calibration.py; 1.0 for all others."""


def rows():
    """Return (subset, published, fp32, gap, bf16, bf16 - fp32) of each line of the table."""
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8").replace("−", "-")
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"[\d.]+", cells[1]):
            subset = re.search(r"[a-z]{2}-[a-z]{2}|[a-z]{3}(?=→eng)", cells[0])
            yield subset.group(), *map(float, cells[1:])


def published():
    with open(CATALOG / "resources" / "published" / "e5_calibration.csv", encoding="utf-8") as file:
        return {row["subset"]: float(row["value"]) for row in csv.DictReader(file)}


def test_every_published_figure_stands_on_the_page():
    printed = {subset: figure for subset, figure, *_ in rows()}
    assert len(printed) == 10
    assert printed == published()


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row[0])
def test_ours_lie_within_the_tolerance(row):
    subset, figure, full, gap, low, change = row
    assert gap == pytest.approx(full - figure, abs=1e-9)
    assert change == pytest.approx(low - full, abs=1e-9)
    assert max(abs(full - figure), abs(low - figure)) <= TOLERANCE.get(subset, 1.0)
