"""Rows read in parts, shelved into another order, cut to sizes, found by id."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora.sampling import sample, sampled
from crosslign.errors import InputError
from crosslign.examples import rows as shelves
from crosslign.examples.rows import Numbers, Rows, cut, gathered, pieces
from crosslign.files import write_rows


def numbered(size, step):
    table = pa.table(
        {"id": pa.array([f"c:{n}" for n in range(size)], pa.string()), "text": pa.array([str(n) for n in range(size)], pa.string())}
    )
    return pieces(table, step)


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 9), st.data())
def test_rows_are_gathered_in_any_order_as_often_as_asked_for(size, step, shelf, data):
    order = data.draw(st.lists(st.integers(0, size - 1), max_size=60))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelves, "SHELF", shelf)
        found = list(gathered(numbered(size, step), np.array(order, np.int64)))
    assert [row for part in found for row in part["text"].to_pylist()] == [str(row) for row in order]
    assert all(part.column_names == ["id", "text"] for part in found)


def test_there_are_never_too_many_shelves(monkeypatch):
    monkeypatch.setattr(shelves, "SHELF", 1)
    monkeypatch.setattr(shelves, "MOST_SHELVES", 3)
    opened = []
    staged = shelves.Staged
    monkeypatch.setattr(shelves, "Staged", lambda path: opened.append(path) or staged(path))
    order = np.random.default_rng(0).permutation(100)
    found = [row for part in gathered(numbered(100, 9), order) for row in part["text"].to_pylist()]
    assert found == [str(row) for row in order]
    assert len(opened) == 3
    assert not any(path.exists() for path in opened)  # nothing stays behind


@pytest.mark.parametrize("sizes", [[10], [3, 0, 4, 3], [1] * 7, [0, 0]])
def test_tables_are_cut_to_sizes(sizes):
    found = list(cut(numbered(10, 4), sizes))
    assert [part.num_rows for part in found] == sizes
    assert [row for part in found for row in part["text"].to_pylist()] == [str(n) for n in range(sum(sizes))]


def test_numbers_of_ids():
    numbers = Numbers(numbered(1000, 64))
    assert numbers.find(pa.chunked_array([["c:999", "c:0"], ["d:0", "c:64"]])).tolist() == [999, 0, -1, 64]


@settings(max_examples=30)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 5))
def test_a_sample_of_a_stream_is_that_of_the_whole(tmp_path_factory, size, limit, seed):
    path = tmp_path_factory.mktemp("sampled") / "rows.arrow"
    found = [row for part in sampled(numbered(size, 17), path, limit, seed) for row in part["text"].to_pylist()]
    assert found == [str(place) for place in sample([f"c:{n}" for n in range(size)], limit, seed)]


def test_rows_of_files(tmp_path):
    table = pa.table({"id": ["c:0", "c:1"], "lang": ["en", "de"], "text": ["a", "b"]})
    write_rows(tmp_path / "c.parquet", table, "mono")
    write_rows(tmp_path / "none.parquet", table.slice(0, 0), "mono")
    rows = Rows.of_file(tmp_path / "c.parquet")
    assert (list(rows.columns), rows.size) == (["id", "lang", "text"], 2)
    assert rows.table(["text", "id"]).to_pydict() == {"text": ["a", "b"], "id": ["c:0", "c:1"]}
    assert [part.column_names for part in Rows.of_file(tmp_path / "none.parquet").parts(["text"])] == [["text"]]
    with pytest.raises(InputError, match="missing"):
        Rows.of_file(tmp_path / "gone.parquet")
