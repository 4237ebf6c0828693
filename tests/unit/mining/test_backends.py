"""Every backend finds the neighbours that the exact search finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_knn import clusters

from crosslign.config.yaml_files import load_yaml
from crosslign.errors import InputError
from crosslign.mining import neighbours
from crosslign.mining.backends import BACKENDS, faiss_flat
from crosslign.mining.knn import State

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
@pytest.mark.parametrize("backend", BACKENDS.names())
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
    x, y = saved(tmp_path)
    search = BACKENDS.get(backend)
    bad = np.load(y)
    bad[5] = 0
    np.save(y, bad)
    with pytest.raises(InputError, match="zero vector"):
        search(x, y, 4, devices=["cpu"], state=State(tmp_path / "state"))
    bad[5] = np.nan
    np.save(y, bad)
    with pytest.raises(InputError, match=r"targets, row 5.*NaN"):
        search(x, y, 4, devices=["cpu"], state=State(tmp_path / "state"))
    np.save(y, bad[:0])
    with pytest.raises(InputError, match="no vectors"):
        search(x, y, 4, devices=["cpu"], state=State(tmp_path / "state"))
    np.save(y, np.ones((3, 5)))
    with pytest.raises(InputError, match="unequal dimension"):
        search(x, y, 4, devices=["cpu"], state=State(tmp_path / "state"))
