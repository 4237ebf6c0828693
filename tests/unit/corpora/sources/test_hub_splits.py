"""One split of a data set on the hub: joined, cut to rows, and fetched from a hub that fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosslign.config.file_lists import with_listed_files
from crosslign.corpora.loopback import Publishers, serving
from crosslign.corpora.sources._splits import join
from crosslign.errors import InputError
from crosslign.files import sha256_file


@pytest.fixture
def parts(tmp_path):
    """Two Parquet files of 10,000 rows each, by name."""
    for number in range(2):
        pq.write_table(pa.table({"n": range(10_000 * number, 10_000 * (number + 1))}), tmp_path / f"train-{number:05d}-of-00002.parquet")
    return sorted(path.name for path in tmp_path.glob("*.parquet"))


@pytest.mark.parametrize(("rows", "asked"), [(None, 2), (1, 1), (10_000, 1), (10_001, 2), (50_000, 2)])
def test_files_are_joined_and_no_more_are_fetched_than_the_rows_lie_in(parts, tmp_path, rows, asked):
    got = []
    total = join(parts, lambda name: got.append(name) or tmp_path / name, rows, tmp_path / "out")
    assert pq.read_table(tmp_path / "out")["n"].to_pylist() == list(range(min(rows or 20_000, 20_000)))
    assert got == parts[:asked]
    assert total == sha256_file(tmp_path / "out")


def test_a_part_that_is_damaged_or_has_other_columns_is_named(parts, tmp_path):
    whole = (tmp_path / parts[1]).read_bytes()
    damaged = [whole[:-40], b"", whole[:1000] + bytes(2000) + whole[3000:]]
    for content in damaged:
        (tmp_path / parts[1]).write_bytes(content)
        with pytest.raises(InputError, match=rf"{parts[1]}: .*split.*`path`"):
            join(parts, lambda name: tmp_path / name, None, tmp_path / "out")
    for columns in ({"m": [1]}, {"n": [1], "m": [1]}, {"n": ["a word"]}, {"n": [[1]]}, {"n": [{"m": 1}]}):
        pq.write_table(pa.table(columns), tmp_path / parts[1])
        with pytest.raises(InputError, match=rf"{parts[1]}: .*split.*`path`"):
            join(parts, lambda name: tmp_path / name, None, tmp_path / "out")


def test_one_file_that_is_wanted_whole_keeps_the_publishers_bytes(parts, tmp_path):
    assert join(parts[:1], lambda name: tmp_path / name, None, tmp_path / "out") == sha256_file(tmp_path / parts[0])


FETCH = """
import sys
from pathlib import Path
from crosslign.corpora.fetch import Patience, fetch_file
source = {"hub": "lab/set", "name": "de", "split": "train", "revision": "0" * 40, "rows": 15000}
fetch_file("set", source, {"name": "de-train.parquet"}, Path(sys.argv[1]), [], Patience(tries=12, first_s=0.02, busy_s=0.02, longest_s=1.0))
"""


def test_a_split_comes_whole_from_a_hub_that_fails(parts, tmp_path):
    at = "0" * 40
    listed = [{"type": "file", "path": f"de/{name}", "oid": at, "size": 1} for name in parts]
    bodies = {f"/datasets/lab/set/resolve/{at}/de/{name}": (tmp_path / name).read_bytes() for name in parts}
    bodies[f"/api/datasets/lab/set/tree/{at}?recursive=true&expand=false"] = json.dumps(listed).encode()
    with serving(Publishers(bodies, 0.6, 3)) as server:
        given = {"HF_ENDPOINT": server.address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
        given |= {"CROSSLIGN_OFFLINE": "0", "NO_PROXY": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", FETCH, str(tmp_path / "set" / "de-train.parquet")]
        done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert sum(server.faults.values()) > 0
    assert pq.read_table(tmp_path / "set" / "de-train.parquet")["n"].to_pylist() == list(range(15_000))
    assert (tmp_path / "set" / "de-train.parquet.sha256").is_file()


def test_the_file_of_a_split_is_called_after_it(tmp_path):
    for entry, name in (({"name": "de", "split": "train"}, "de-train.parquet"), ({"split": "test"}, "test.parquet")):
        assert with_listed_files(tmp_path, {"s": {"hub": "a/b", **entry}})["s"]["files"] == [{"name": name}]
