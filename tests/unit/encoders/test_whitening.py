"""Whitening against the formula of its authors, in float64, over the vectors of every occurrence."""

import numpy as np
import pyarrow as pa
import pytest

from crosslign.encoders import whitening
from crosslign.encoders.encode import encode
from crosslign.encoders.whitening import fit, occurrences, whiten
from crosslign.errors import InputError
from crosslign.files import write_rows
from crosslign.files.rows import SCHEMAS


def by_the_formula(fitted, vectors, dimensions):
    """Su et al. 2021, section 3, as bojone/BERT-whitening states it: mean, `numpy.cov`, SVD, and unit length."""
    mean = fitted.mean(axis=0, keepdims=True)
    u, s, _ = np.linalg.svd(np.cov(fitted.T))
    moved = (vectors - mean) @ (u @ np.diag(s**-0.5))[:, :dimensions]
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


@pytest.fixture
def matrices(tmp_path):
    rng = np.random.default_rng(1)
    mixed = rng.normal(size=(12, 12))
    made = {name: (rng.normal(size=(n, 12)) @ mixed + 3).astype(np.float32) for name, n in (("fitted", 90), ("own", 31))}
    for name, matrix in made.items():
        np.save(tmp_path / f"{name}.npy", matrix)
    return {name: (tmp_path / f"{name}.npy", matrix.astype(np.float64)) for name, matrix in made.items()}


@pytest.mark.parametrize("dimensions", [5, 12])
def test_cosines_are_those_of_the_formula(matrices, tmp_path, monkeypatch, dimensions):
    monkeypatch.setattr(whitening, "ROWS", 16)
    weights = np.random.default_rng(2).integers(1, 4, 90)
    mean, kernel = fit(matrices["fitted"][0], weights, dimensions)
    whiten(matrices["own"][0], mean, kernel, True, tmp_path / "out.npy")
    expected = by_the_formula(np.repeat(matrices["fitted"][1], weights, axis=0), matrices["own"][1], dimensions)
    found = np.load(tmp_path / "out.npy")
    assert found.shape == (31, dimensions)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-6)


def test_fitted_vectors_have_no_mean_and_a_covariance_of_one(matrices, tmp_path):
    weights = np.ones(90, dtype=np.int64)
    whiten(matrices["fitted"][0], *fit(matrices["fitted"][0], weights, 12), False, tmp_path / "out.npy")
    found = np.load(tmp_path / "out.npy").astype(np.float64)
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(np.cov(found.T), np.eye(12), atol=1e-5)


def test_only_what_spreads_is_kept(tmp_path):
    flat = np.zeros((20, 6), dtype=np.float32)
    flat[:, :2] = np.random.default_rng(3).normal(size=(20, 2))
    np.save(tmp_path / "flat.npy", flat)
    assert fit(tmp_path / "flat.npy", np.ones(20, dtype=np.int64), 6)[1].shape == (6, 2)
    np.save(tmp_path / "same.npy", np.ones((20, 6), dtype=np.float32))
    with pytest.raises(InputError, match=r"same\.npy: .*equal"):
        fit(tmp_path / "same.npy", np.ones(20, dtype=np.int64), 6)


def test_texts_count_as_often_as_they_occur(tmp_path):
    texts = [{"text_id": name, "lang": "en", "text": name, "pair_text": None} for name in "abc"]
    items = [{"split": "test", "subset": "en", "item_id": str(at), "role": "sentence", "text_id": name} for at, name in enumerate("cabaa")]
    for name, rows in (("texts", texts), ("items", items)):
        write_rows(tmp_path / f"{name}.parquet", pa.Table.from_pylist(rows, schema=SCHEMAS[name]), name)
    assert occurrences(tmp_path / "texts.parquet", tmp_path / "items.parquet").tolist() == [3, 1, 1]


def test_a_training_has_nothing_to_fit_to(tiny_model):
    readout = {"pooling": "mean", "max_length": 8, "whitening": {"of": "mean", "text_set": "nli", "dimensions": 4}}
    with pytest.raises(InputError, match=r"readout: .*whitened.*table"):
        encode(tiny_model, ["a"], ["en"], readout)
