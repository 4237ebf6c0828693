"""Every backend finds the neighbours that the exact search finds."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_knn import clusters

from crosslign.config.yaml_files import load_yaml
from crosslign.errors import InputError, ResourceError
from crosslign.files import write_rows
from crosslign.mining.backends import BACKENDS, faiss_flat, faiss_ivf_pq
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours, State, read_neighbours, write_neighbours
from crosslign.mining.pairs import write_pairs

ROOT = Path(__file__).resolve().parents[3]


def saved(folder: Path, dtype: str = "float32") -> tuple[Path, Path]:
    paths = folder / "x.npy", folder / "y.npy"
    for path, side in zip(paths, (clusters(300, 32, 1) * 7, clusters(210, 32, 2)), strict=True):
        np.save(path, side.astype(dtype))
    return paths


def test_the_schema_names_every_backend() -> None:
    entry = load_yaml(ROOT / "workflow" / "schemas" / "config.yaml").content["$defs"]["mine"]["properties"]["backend"]
    assert sorted(entry["enum"]) == BACKENDS.names()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("backend", [name for name in BACKENDS.names() if name != "faiss_ivf_pq"])
@pytest.mark.parametrize("k", [4, 1000])
def test_backends_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, dtype: str, k: int) -> None:
    monkeypatch.setattr(faiss_flat, "PIECE", 77)
    x, y = saved(tmp_path, dtype)
    found = BACKENDS.get(backend)(x, y, k, devices=["cpu"], state=State(tmp_path / "state"))
    expected = neighbours(x, y, k)
    for side in ("forward", "backward"):
        scores, indices = (getattr(found, f"{side}_{what}") for what in ("scores", "indices"))
        others, other = (getattr(expected, f"{side}_{what}") for what in ("scores", "indices"))
        assert indices.shape == other.shape
        assert indices.dtype == np.int64
        assert np.abs(scores - others).max() < 1e-6
        # Where the order differs, the scores are so close that rounding in float32 may swap them.
        by_index, by_index_other = (np.take_along_axis(s, np.argsort(i, 1), 1) for s, i in ((scores, indices), (others, other)))
        assert np.abs(by_index - by_index_other).max() < 1e-6


@pytest.mark.parametrize("backend", BACKENDS.names())
def test_bad_vectors_are_refused_by_every_backend(tmp_path: Path, backend: str) -> None:
    x, y = large(tmp_path)
    search = BACKENDS.get(backend)
    bad = np.load(y)
    bad[5] = 0
    np.save(y, bad)
    with pytest.raises(InputError, match=r"y\.npy, row 5.*zero"):
        search(x, y, 4, devices=["cpu"], state=State(tmp_path / "state"))
    bad[5] = np.nan
    np.save(y, bad)
    with pytest.raises(InputError, match=r"y\.npy, row 5.*NaN"):
        search(x, y, 4, devices=["cpu"], state=State(tmp_path / "state"))
    np.save(y, bad[:0])
    with pytest.raises(InputError, match=r"y\.npy: .*vectors"):
        search(x, y, 4, devices=["cpu"], state=State(tmp_path / "state"))
    np.save(y, np.ones((3, 5)))
    with pytest.raises(InputError, match=r"y\.npy: .*dimension"):
        search(x, y, 4, devices=["cpu"], state=State(tmp_path / "state"))


@pytest.mark.parametrize("backend", ["faiss_flat", "faiss_ivf_pq"])
def test_without_faiss_the_backend_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ResourceError, match=rf"mine: backend: {backend}: .*pip install faiss-cpu"):
        BACKENDS.get(backend)(*large(tmp_path), 4, devices=["cpu"], state=State(tmp_path / "state"))


def large(folder: Path) -> tuple[Path, Path]:
    paths = folder / "x.npy", folder / "y.npy"
    for path, side in zip(paths, (clusters(700, 32, 1), clusters(900, 32, 2)), strict=True):
        np.save(path, side)
    return paths


def approximate(folder: Path, paths: tuple[Path, Path], **options: int) -> Neighbours:
    options = {"m": 8, "nbits": 4, "nlist": 8, **options}
    return BACKENDS.get("faiss_ivf_pq")(*paths, 4, devices=["cpu"], state=State(folder / "state"), **options)


def test_approximate_search_tells_its_recall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faiss_ivf_pq, "PIECE", 77)
    paths = large(tmp_path)
    exact = neighbours(*paths, 4)
    for options, all_found in (({"nprobe": 1, "k_factor": 1}, False), ({"nprobe": 8, "k_factor": 300}, True)):
        found = approximate(tmp_path, paths, sample=10_000, **options)
        sides = ((found.forward_indices, exact.forward_indices), (found.backward_indices, exact.backward_indices))
        hits = [len(set(a) & set(b)) / 4 for ours, theirs in sides for a, b in zip(ours.tolist(), theirs.tolist(), strict=True)]
        assert found.recall == pytest.approx(sum(hits) / len(hits))
        assert (found.recall == 1.0) == all_found
    assert np.array_equal(found.forward_scores, exact.forward_scores)
    assert np.array_equal(found.backward_indices, exact.backward_indices)


def test_rows_for_which_too_few_are_found_are_searched_exactly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """300 lists of about three vectors, of which one is looked at."""
    paths = large(tmp_path)
    found, exact = approximate(tmp_path, paths, nlist=300, nprobe=1), neighbours(*paths, 4)
    told = [int(record.args[0]) for record in caplog.records if "searched exactly" in record.msg]
    assert len(told) == 2
    assert min(told) > 100
    for side in ("forward", "backward"):
        indices, scores = (getattr(found, f"{side}_{what}") for what in ("indices", "scores"))
        others = getattr(exact, f"{side}_indices")
        assert indices.min() >= 0
        assert np.isfinite(scores).all()
        assert (np.diff(scores) <= 0).all()
        assert (indices == others).all(1).sum() >= told[side == "backward"]


def test_recall_on_a_sample_is_near_that_on_all(tmp_path: Path) -> None:
    paths = large(tmp_path)
    options = {"nprobe": 2, "k_factor": 2}
    assert approximate(tmp_path, paths, sample=300, **options).recall == pytest.approx(
        approximate(tmp_path, paths, sample=900, **options).recall, abs=0.05
    )


def test_an_index_that_cannot_be_built_is_refused(tmp_path: Path) -> None:
    paths = large(tmp_path)
    with pytest.raises(InputError, match="m = 7"):
        approximate(tmp_path, paths, m=7)
    with pytest.raises(InputError, match=r"900 .* 1024\b"):
        approximate(tmp_path, paths, nbits=10)


@pytest.mark.parametrize("recall", [0.875, 1.0])
def test_recall_stands_beside_every_pair_of_an_approximate_search(tmp_path: Path, recall: float) -> None:
    """Also where all that the sample asked for was found: the search is none the less approximate."""
    found = replace(neighbours(np.eye(3), np.eye(3), 2), recall=recall)
    write_neighbours(tmp_path / "near.safetensors", found)
    near = read_neighbours(tmp_path / "near.safetensors")
    assert near.recall == near.turned().recall == recall
    for side in "st":
        write_rows(tmp_path / f"{side}.parquet", pa.table({"text_id": list("123"), "lang": ["de"] * 3, "text": list("abc")}), "texts")
    texts, outputs = (tmp_path / "s.parquet", tmp_path / "t.parquet"), {"tsv": tmp_path / "out.tsv", "parquet": tmp_path / "out.parquet"}
    counts = write_pairs(near, texts, outputs, margin="absolute", retrieval="max", threshold=None)
    assert counts["recall_at_k"] == recall
    header, *lines = outputs["tsv"].read_text().splitlines()
    assert header.split("\t")[-1] == "recall_at_k"
    assert [line.split("\t")[-1] for line in lines] == [f"{recall:.4f}"] * 3
    assert pq.read_table(outputs["parquet"])["recall_at_k"].to_pylist() == [recall] * 3


def test_faiss_searches_on_the_gpus_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build for CPUs has no such function; what it would get is an index with all rows, and the numbers of the devices."""
    faiss = pytest.importorskip("faiss")
    moved: list[tuple[int, list[int]]] = []

    def move(index: Any, gpus: list[int]) -> Any:
        moved.append((index.ntotal, gpus))
        return index

    monkeypatch.setattr(faiss, "index_cpu_to_gpus_list", move, raising=False)
    x, y = saved(tmp_path, "float32")
    search = BACKENDS.get("faiss_flat")
    expected = search(x, y, 4, devices=["cpu"], state=State(tmp_path / "state"))
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    search(x, y, 4, devices=["cuda:0"], state=State(tmp_path / "state"))
    assert moved == []
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2)
    found = search(x, y, 4, devices=["cuda:0", "cuda:1"], state=State(tmp_path / "state"))
    assert moved == [(len(np.load(side)), [0, 1]) for side in (y, x)]
    assert np.array_equal(found.forward_indices, expected.forward_indices)
