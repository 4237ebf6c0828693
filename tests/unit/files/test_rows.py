import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosslign.corpora.readers._parquet import read_texts
from crosslign.errors import InputError
from crosslign.files import iter_rows, read_rows, write_batches, write_rows
from crosslign.files.rows import ParquetRows


def test_rows_come_back_under_their_schema_with_absent_columns_null(tmp_path):
    write_rows(tmp_path / "a.parquet", pa.table({"id": ["a"], "a_text": ["x"], "a_lang": ["en"], "rows": [["c:1"]]}), "pairs")
    table = read_rows(tmp_path / "a.parquet", "pairs")
    assert table.column_names == ["id", "rows", "a_text", "a_lang", "b_text", "b_lang"]
    assert table["b_text"].to_pylist() == [None]


def test_an_unknown_column_is_refused(tmp_path):
    with pytest.raises(ValueError, match="colour"):
        write_rows(tmp_path / "a.parquet", pa.table({"id": ["a"], "colour": ["red"]}), "mono")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_column_names_file_and_column(tmp_path):
    write_rows(tmp_path / "a.parquet", pa.table({"id": ["a"], "lang": ["en"], "text": ["x"]}), "mono")
    with pytest.raises(InputError, match=r"a\.parquet: .*'a_lang'.*missing"):
        read_rows(tmp_path / "a.parquet", "bitext")


def test_an_unreadable_file_says_what_to_do(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(InputError, match=r"a\.parquet: .*Parquet"):
        read_rows(tmp_path / "a.parquet")


def test_rows_are_found_across_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("crosslign.files.rows.ROW_GROUP", 4)
    tables = [pa.table({"text_id": [str(at)], "lang": ["en"], "text": ["x"]}) for at in range(11)]
    write_batches(tmp_path / "rows.parquet", tables, "texts")
    rows = ParquetRows(tmp_path / "rows.parquet")
    assert len(rows) == 11
    for start, stop in ((0, 11), (3, 5), (4, 8), (8, 11), (9, 10)):
        assert rows.between(start, stop)["text_id"].to_pylist() == [str(at) for at in range(start, stop)]


@pytest.mark.parametrize("read", [iter_rows, lambda path: read_texts(path, "text")], ids=["rows of a corpus", "articles of a publisher"])
def test_what_was_read_of_a_file_does_not_stay_in_memory(tmp_path, read):
    path, draw = tmp_path / "a.parquet", random.Random(1)
    with pq.ParquetWriter(path, pa.schema([("text", pa.string())])) as file:
        for _ in range(40):
            file.write_table(pa.table({"text": [draw.randbytes(50).hex() for _ in range(10_000)]}))
    before, most = pa.total_allocated_bytes(), 0
    for _ in read(path):
        most = max(most, pa.total_allocated_bytes() - before)
    assert 0 < most < path.stat().st_size / 2
