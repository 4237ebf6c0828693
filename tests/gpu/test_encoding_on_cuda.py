"""Vectors and logits of a GPU are close to a CPU's, in every precision and pooling; the packed pass is the padded one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

from crosslign.encoders.encode import apply_head, encode
from crosslign.encoders.model import Model
from crosslign.encoders.packed.training import PackedTraining, trains_packed
from crosslign.encoders.text_sets import embed_text_set
from crosslign.encoders.tokens import collate
from crosslign.files import write_rows


@pytest.fixture
def texts(sentence_pairs):
    return [text for pair in sentence_pairs for text in pair]


@pytest.fixture
def on_both(cuda, on_a_cpu, tiny_encoder, texts):
    """Encode the texts on a CPU and on a GPU: by a readout, alone or as pairs."""

    def encoded(readout, pairs=None):
        def run(device):
            model = Model.load({"main": tiny_encoder / "main"}).to(device)
            return encode(model, texts, ["en", "de"] * (len(texts) // 2), readout, pairs)

        with on_a_cpu():
            expected = run("cpu")
        return expected, run(cuda)

    return encoded


@pytest.mark.parametrize("pooling", ["mean", "cls", "avg_first_last", "pooler"])
def test_vectors_are_close_to_a_cpus(on_both, pooling):
    expected, found = on_both({"pooling": pooling, "precision": "fp32", "prefix": "query: "})
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5


def test_vectors_of_an_inner_layer_and_of_pairs_are_too(on_both, texts):
    for readout, pairs in (({"pooling": "mean", "layer": 1}, None), ({"pooling": "cls", "normalise": False}, texts[::-1])):
        expected, found = on_both(readout, pairs)
        assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_vectors_of_half_precision_point_the_same_way(on_both, cuda, tiny_encoder, texts, precision):
    full, _ = on_both({"pooling": "mean"})
    half = encode(
        Model.load({"main": tiny_encoder / "main"}).to(cuda), texts, ["en"] * len(texts), {"pooling": "mean", "precision": precision}
    )
    cosines = (full * half).sum(1)
    assert cosines.min() > 0.999
    assert not np.array_equal(full, half)


def test_a_text_set_is_encoded_on_the_gpu(cuda, tiny_encoder, texts, tmp_path):
    ids = [str(number) for number in range(len(texts))]
    write_rows(tmp_path / "texts.parquet", pa.table({"text_id": ids, "lang": ["en"] * len(ids), "text": texts}), "texts")
    readout = {"pooling": "mean", "layer": -1, "max_length": 32, "normalise": True, "precision": "fp32", "prefix": ""}
    counts = embed_text_set({"main": tiny_encoder / "main"}, tmp_path / "texts.parquet", readout, tmp_path / "x.npy")
    expected = encode(Model.load({"main": tiny_encoder / "main"}), texts, ["en"] * len(texts), readout)
    assert (counts["device"], counts["devices"]) == ("cuda", 1)
    assert np.abs(np.load(tmp_path / "x.npy") - expected).max() < 1e-5


def test_a_head_gives_a_cpus_logits(cuda):
    head = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3))
    vectors = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    expected = apply_head(head, vectors)
    assert np.abs(apply_head(head, vectors, cuda) - expected).max() < 1e-5


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_the_packed_pass_is_the_padded_one_in_value_and_gradient(cuda, tiny_encoder, texts, precision):
    """By transformers' own forward pass, in full precision; half precision is near it."""
    member = Model.load({"main": tiny_encoder / "main"}).to(cuda).member("main").eval()
    if not trains_packed(member.backbone, precision):
        pytest.skip(f"there is no packed pass in {precision} on a GPU")
    tokens = member.tokenise(texts, None, 64)
    features = collate(tokens.ids, None, member.pad, cuda)
    real = features["attention_mask"].bool().unsqueeze(2)
    slopes = torch.randn(*real.shape[:2], member.dimension, generator=torch.Generator().manual_seed(0)).to(cuda) * real
    passes = {}
    for name, backbone in (("padded", member.backbone), ("packed", PackedTraining(member.backbone, precision))):
        member.zero_grad(set_to_none=True)
        states = backbone(**features).last_hidden_state.float() * real
        (states * slopes).sum().backward()
        gradients = {key: value.grad.to_dense().cpu() for key, value in member.backbone.named_parameters() if value.grad is not None}
        passes[name] = states.detach().cpu(), gradients
    tolerance = {"fp32": 1e-4, "bf16": 0.04, "fp16": 0.01}[precision]
    (padded, expected), (packed, found) = passes["padded"], passes["packed"]
    assert (packed - padded).norm() <= tolerance * padded.norm()
    assert found.keys() == expected.keys()
    scale = max(float(gradient.norm()) for gradient in expected.values())
    for key, gradient in expected.items():
        assert (found[key] - gradient).norm() <= tolerance * max(float(gradient.norm()), 0.01 * scale), key
