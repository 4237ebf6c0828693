"""MTEB scores the same vectors as we do: its own tasks STS17 and Tatoeba, on random vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from build_sets import build, matrix

from crosslign.tasks.score import score

mteb = pytest.importorskip("mteb", reason="mteb is not installed: pip install mteb")
datasets = pytest.importorskip("datasets")

N, D = 60, 12


def _lookup(vectors):
    """Return an encoder for MTEB that looks texts up: vectors by text."""
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder

    class Lookup(AbsEncoder):
        mteb_model_meta = ModelMeta.create_empty()

        def encode(self, inputs, **kwargs):
            return np.array([vectors[text] for batch in inputs for text in batch["text"]], dtype=np.float32)

        def similarity(self, a, b):
            return torch.nn.functional.normalize(torch.as_tensor(a)) @ torch.nn.functional.normalize(torch.as_tensor(b)).T

    return Lookup()


def _theirs(task_name, subset, columns, vectors):
    task = mteb.get_task(task_name, hf_subsets=[subset])
    task.dataset = {subset: datasets.DatasetDict({"test": datasets.Dataset.from_dict(columns)})}
    task.data_loaded = True
    return task.evaluate(_lookup(vectors), "test", [subset], encode_kwargs={"batch_size": 32})[subset]


def _texts(seed):
    """Return texts of two sides and a vector for each; partners lie near each other, some on top of one another."""
    rng = np.random.default_rng(seed)
    left, right = [f"links {i}" for i in range(N)], [f"right {i}" for i in range(N)]
    a = rng.normal(size=(N, D))
    b = a + rng.normal(size=(N, D)) * rng.uniform(0.2, 3.0, size=(N, 1))
    return left, right, dict(zip([*left, *right], [*a, *b], strict=True))


def _ours(task, vectors, subsets, roles, scores=None):
    evaluation = build(subsets, roles, scores)
    rows = {(lang, text): vector for text, vector in vectors.items() for lang in ("xx", "en")}
    return {
        (r.metric, r.protocol, r.direction or ""): r.value
        for r in score("task", {"resamples": 0, **task}, {"test": matrix(evaluation, rows)}, {"test": evaluation})
        if r.subset == next(iter(subsets))
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_sts17(seed):
    left, right, vectors = _texts(seed)
    gold = (np.random.default_rng(seed).integers(0, 11, N) / 2).tolist()
    theirs = _theirs("STS17", "es-es", {"sentence1": left, "sentence2": right, "score": gold}, vectors)
    task = {"scorer": "sts", "texts": {"test": "t"}, "main": {"metric": "spearman", "subset": "es-es"}, "averages": {}}
    ours = _ours(task, vectors, {"es-es": (left, right, [(i, i) for i in range(N)])}, ("first", "second"), {"es-es": gold})
    assert ours["spearman", "", ""] == pytest.approx(theirs["cosine_spearman"], abs=1e-6)
    assert ours["pearson", "", ""] == pytest.approx(theirs["cosine_pearson"], abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_tatoeba(seed):
    left, right, vectors = _texts(seed)
    theirs = _theirs("Tatoeba", "deu-eng", {"sentence1": left, "sentence2": right}, vectors)
    subsets = {"deu-eng": (left, right, [(i, i) for i in range(N)])}
    retrieval = {
        "scorer": "retrieval",
        "texts": {"test": "t"},
        "main": {"metric": "accuracy", "subset": "deu-eng", "direction": "xx2en"},
        "averages": {},
    }
    assert 0.3 < theirs["accuracy"] < 0.98
    ours = _ours(retrieval, vectors, subsets, ("source", "target"))
    assert ours["accuracy", "", "xx2en"] == pytest.approx(theirs["accuracy"], abs=1e-12)
    mining = {"scorer": "bitext_mining", "protocols": ["mteb"], "texts": {"test": "t"}, "averages": {}}
    mining |= {"main": {"metric": "weighted_f1", "subset": "deu-eng", "protocol": "mteb"}}
    ours = _ours(mining, vectors, subsets, ("source", "target"))
    assert ours["weighted_f1", "mteb", ""] == pytest.approx(theirs["f1"], abs=1e-12)
    assert ours["weighted_precision", "mteb", ""] == pytest.approx(theirs["precision"], abs=1e-12)
    assert ours["weighted_recall", "mteb", ""] == pytest.approx(theirs["recall"], abs=1e-12)
    assert ours["accuracy", "mteb", ""] == pytest.approx(theirs["accuracy"], abs=1e-12)
