"""Best lists of ranges, joined, are those of one search: whatever the number of ranges, with ties, and with fewer rows than ranges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_knn import equal, full_comparison, hard_cases

from crosslign.errors import InputError
from crosslign.mining.backends import BACKENDS
from crosslign.mining.lists import State, joined, range_of


@pytest.mark.parametrize("parts", [1, 2, 7, 200])
@pytest.mark.parametrize("case", ["clusters", "duplicates", "lattice with many ties", "all alike", "one source", "one dimension"])
def test_ranges_joined_are_a_full_comparison(tmp_path, case, parts):
    x, y = hard_cases()[case]
    for side, matrix in (("x", x), ("y", y)):
        np.save(tmp_path / f"{side}.npy", matrix)
    search, files = BACKENDS.get("exact"), (tmp_path / "x.npy", tmp_path / "y.npy")
    found = (search(*files, 4, devices=["cpu"], state=State(tmp_path / str(part)), part=part, parts=parts) for part in range(1, parts + 1))
    assert equal(joined(found, 4), full_comparison(x, y, 4))


@pytest.mark.parametrize(("rows", "parts"), [(10, 3), (3, 10), (0, 4), (7, 1), (40_000_001, 97)])
def test_ranges_hold_every_row_once_and_differ_by_one_row_at_most(rows, parts):
    ranges = [range_of(part, parts, rows) for part in range(1, parts + 1)]
    assert (ranges[0].start, ranges[-1].stop) == (0, rows)
    assert all(one.stop == other.start for one, other in itertools.pairwise(ranges))
    sizes = [one.stop - one.start for one in ranges]
    assert max(sizes) - min(sizes) <= 1


def test_a_vector_without_direction_is_named_by_its_row_of_the_whole_side(tmp_path):
    x, y = np.eye(6, dtype=np.float32), np.eye(6, dtype=np.float32)
    x[4] = np.nan
    for side, matrix in (("x", x), ("y", y)):
        np.save(tmp_path / f"{side}.npy", matrix)
    with pytest.raises(InputError, match=r"x\.npy, row 4"):
        BACKENDS.get("exact")(tmp_path / "x.npy", tmp_path / "y.npy", 2, devices=["cpu"], state=State(tmp_path / "s"), part=2, parts=2)
