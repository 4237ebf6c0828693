"""Encoders with dense layers of their own (LaBSE, Sentence-T5): vectors are SentenceTransformer's, and stay so when they are saved."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, T5Config, T5EncoderModel

from crosslign.encoders.encode import encode
from crosslign.encoders.model import Model
from crosslign.encoders.prepare import prepare_encoder
from crosslign.errors import InputError

TEXTS = ["the dog sleeps", "a cat runs over the road and sees the dog", "rain"]
READOUT = {"pooling": "pooler", "layer": -1, "max_length": 12, "normalise": True, "precision": "fp32", "prefix": ""}


def t5(tiny_encoder, folder):
    """Write the encoder half of a tiny T5, with the tokenizer of the tiny BERT."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder / "main")
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tokenizer), "d_model": 24, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 3}
    T5EncoderModel(T5Config(pad_token_id=tokenizer.pad_token_id, **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["labse", "sentence_t5"])
def published(request, tiny_encoder, tmp_path_factory):
    """A folder as SentenceTransformer publishes it, and the vectors that it gives there."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

    folder = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(1)
    if request.param == "labse":
        first = Transformer(str(tiny_encoder / "main"), max_seq_length=12)
        width = first.get_embedding_dimension()
        after = [Pooling(width, pooling_mode="cls"), Dense(width, width, activation_function=torch.nn.Tanh())]
    else:
        first = Transformer(str(t5(tiny_encoder, folder / "t5")), max_seq_length=12)
        after = [Pooling(24, pooling_mode="mean"), Dense(24, 10, bias=False, activation_function=torch.nn.Identity())]
    model = SentenceTransformer(modules=[first, *after, Normalize()], device="cpu")
    model.save(str(folder / "published"))
    return folder / "published", model.encode(TEXTS)


def vectors_of(folder):
    return encode(Model.load({"main": folder}), TEXTS, ["en"] * len(TEXTS), READOUT)


def test_the_pooler_is_what_the_publisher_gives(published, tmp_path):
    folder, theirs = published
    prepare_encoder("x", {"path": str(folder)}, {}, tmp_path / "x")
    ours = vectors_of(tmp_path / "x" / "main")
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() < 1e-6
    plain = encode(Model.load({"main": tmp_path / "x" / "main"}), TEXTS, ["en"] * len(TEXTS), READOUT | {"pooling": "mean"})
    assert plain.shape[1] != theirs.shape[1] or np.abs(plain - theirs).max() > 0.01


def test_a_trained_one_is_saved_with_its_dense_layers(published, tmp_path):
    from sentence_transformers import SentenceTransformer

    model = Model.load({"main": published[0]})
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn(weights.shape, generator=torch.Generator().manual_seed(2)), alpha=0.05)
    trained = encode(model, TEXTS, ["en"] * len(TEXTS), READOUT)
    assert np.abs(trained - published[1]).max() > 0.01
    model.save(tmp_path, READOUT)
    assert np.array_equal(vectors_of(tmp_path / "main"), trained)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        theirs = SentenceTransformer(str(tmp_path / "main"), device="cpu").encode(TEXTS)
    assert np.abs(theirs - trained).max() < 1e-6


def test_dense_layers_learn_and_are_copied_with_their_own_weights(published):
    member = Model.load({"main": published[0]}).member("main")
    copied = member.copied()
    ids = torch.tensor([[5, 6, 7]])
    member.train()(({"input_ids": ids}), "pooler").sum().backward()
    assert all(weights.grad is not None and weights.grad.abs().sum() > 0 for weights in member.dense.parameters())
    with torch.no_grad():
        member.dense.linears[0].weight.add_(1.0)
    assert not torch.equal(copied.dense.linears[0].weight, member.dense.linears[0].weight)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("2_Dense/config.json", {"activation_function": "os.system"}, r"2_Dense/config\.json: .*os\.system"),
        ("1_Pooling/config.json", {"pooling_mode": "weightedmean"}, r"1_Pooling/config\.json: .*weightedmean"),
    ],
)
def test_names_that_are_not_known_are_refused(published, tmp_path, file, change, message):
    prepare_encoder("x", {"path": str(published[0])}, {}, tmp_path / "x")
    path = tmp_path / "x" / "main" / file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        vectors_of(tmp_path / "x" / "main")


def test_pickled_dense_weights_are_never_loaded(published, tmp_path):
    prepare_encoder("x", {"path": str(published[0])}, {}, tmp_path / "x")
    weights = tmp_path / "x" / "main" / "2_Dense" / "model.safetensors"
    weights.rename(weights.with_name("pytorch_model.bin"))
    with pytest.raises(InputError, match=r"2_Dense: .*safetensors"):
        vectors_of(tmp_path / "x" / "main")
