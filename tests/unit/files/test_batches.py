"""Rows written and read batch by batch."""

from __future__ import annotations

import pyarrow as pa
import pytest

from crosslign.errors import InputError
from crosslign.files import iter_rows, read_rows, sha256_file, write_batches
from crosslign.files.rows import ROW_GROUP


def batches(total, size):
    for start in range(0, total, size):
        numbers = range(start, min(total, start + size))
        yield pa.table({"id": [f"c:{n}" for n in numbers], "lang": ["en"] * len(numbers), "text": ["x"] * len(numbers)})


def test_bytes_do_not_depend_on_the_batches(tmp_path):
    total, sums = ROW_GROUP + 100, set()
    for size in (999, 40_000, total):
        assert write_batches(tmp_path / f"{size}.parquet", batches(total, size), "mono") == total
        sums.add(sha256_file(tmp_path / f"{size}.parquet"))
    assert len(sums) == 1
    tables = list(iter_rows(tmp_path / "999.parquet"))
    assert [table.num_rows for table in tables] == [ROW_GROUP, 100]
    assert pa.concat_tables(tables).equals(read_rows(tmp_path / "999.parquet", "mono").combine_chunks())
    assert next(iter_rows(tmp_path / "999.parquet", ["text"])).column_names == ["text"]


def test_no_rows_and_bad_rows(tmp_path):
    assert write_batches(tmp_path / "none.parquet", [], "mono") == 0
    assert read_rows(tmp_path / "none.parquet", "mono").num_rows == 0
    with pytest.raises(ValueError, match="words"):
        write_batches(tmp_path / "bad.parquet", [pa.table({"words": ["x"]})], "mono")
    assert not (tmp_path / "bad.parquet").exists()


def test_unreadable_files_are_named(tmp_path):
    write_batches(tmp_path / "x.parquet", batches(5000, 999), "mono")
    content = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(content[: len(content) // 2])
    for read in (read_rows, lambda path: list(iter_rows(path))):
        with pytest.raises(InputError, match=r"x\.parquet: .*Parquet"):
            read(tmp_path / "x.parquet")
        with pytest.raises(InputError, match="missing"):
            read(tmp_path / "y.parquet")
