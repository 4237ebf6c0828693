"""Vectors and logits of a GPU are close to a CPU's, in every precision and pooling; the packed pass is the padded one."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
import torch
from pretend_tensor import PretendTensor
from torch import nn

from crosslign.encoders import encode as module
from crosslign.encoders import matrices, shards
from crosslign.encoders.encode import apply_head, encode
from crosslign.encoders.matrices import embed_texts
from crosslign.encoders.model import Member, Model
from crosslign.encoders.packed.training import PackedTraining, trains_packed
from crosslign.errors import InputError, ResourceError
from crosslign.files import write_rows
from crosslign.workers import Worker


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


def test_half_precision_goes_without_padding_unless_kernels_are_off(cuda, tiny_encoder, texts):
    """Where a kernel cannot be used, as on a pretend GPU, torch's functions take its place."""
    model = Model.load({"main": tiny_encoder / "main"}).to(cuda)
    if not trains_packed(model.member("main").backbone, "bf16", "auto"):
        pytest.skip("there is no packed pass in bf16 on this GPU")
    found = []
    for kernels in ("off", "auto"):
        model.kernels = kernels
        found.append(encode(model, texts, ["en"] * len(texts), {"pooling": "mean", "precision": "bf16"}))
    padded, packed = found
    assert (padded * packed).sum(1).min() > 0.999
    assert not np.array_equal(padded, packed)


def test_tf32_holds_for_its_encoding_alone(cuda, on_both):
    before = torch.backends.cuda.matmul.fp32_precision
    expected, found = on_both({"pooling": "mean", "precision": "tf32"})
    assert (expected * found).sum(1).min() > 0.9999
    assert torch.backends.cuda.matmul.fp32_precision == before


READOUT = {"pooling": "mean", "layer": -1, "max_length": 32, "normalise": True, "precision": "fp32", "prefix": ""}


@pytest.fixture
def embed(tiny_encoder, texts, tmp_path):
    """Encode the evaluation corpus of all texts; returns the matrix and what was counted."""
    ids = [str(number) for number in range(len(texts))]
    write_rows(tmp_path / "texts.parquet", pa.table({"text_id": ids, "lang": ["en"] * len(ids), "text": texts}), "texts")

    def run(name):
        members, out = {"main": tiny_encoder / "main"}, tmp_path / name
        counts = embed_texts(members, tmp_path / "texts.parquet", READOUT, out, work=tmp_path / "work")
        return np.load(out), counts

    return run


def test_a_text_set_is_encoded_on_the_gpu(cuda, embed, tiny_encoder, texts):
    found, counts = embed("x.npy")
    expected = encode(Model.load({"main": tiny_encoder / "main"}), texts, ["en"] * len(texts), READOUT)
    assert (counts["device"], counts["devices"]) == ("cuda", 1)
    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize(("least", "waste"), [(1, 0.25), (1 << 20, None)])
def test_a_batch_of_more_than_a_few_tokens_holds_sentences_of_like_length(on_both, texts, monkeypatch, least, waste):
    batches, forward = [], Member.forward

    def noted(self, features, *rest):
        if features["input_ids"].device.type == "cuda":
            real = features.get("attention_mask", torch.ones_like(features["input_ids"])).sum(1)
            batches.append((len(real), int(real.max()), int(real.min())))
        return forward(self, features, *rest)

    monkeypatch.setattr(Member, "forward", noted)
    monkeypatch.setattr(module, "LEAST", least)
    expected, found = on_both({"pooling": "mean", "precision": "fp32"})
    assert np.abs(found - expected).max() < 1e-5
    assert sum(rows for rows, _, _ in batches) == len(texts)
    if waste is None:  # as few tokens as these are one batch
        assert len(batches) == 1
    else:
        assert len(batches) > 1
        assert all(longest <= (1 + waste) * shortest for _, longest, shortest in batches)


@pytest.fixture
def order_of_events(monkeypatch):
    """Let the first forward pass wait for a number of tokenisings, and fail where they do not come; returns who tokenised, and when."""
    seen, tokenised = [], threading.Semaphore(0)

    def watch(before_the_first):
        tokenise, forward = Member.tokenise, Member.forward

        def noted(self, *given):
            tokens = tokenise(self, *given)
            seen.append(("tokenised", threading.current_thread() is threading.main_thread()))
            tokenised.release()
            return tokens

        def waiting(self, *given):
            if "encoded" not in seen:
                assert all(tokenised.acquire(timeout=20) for _ in range(before_the_first)), "nothing is tokenised while a batch is encoded"
            seen.append("encoded")
            return forward(self, *given)

        monkeypatch.setattr(Member, "tokenise", noted)
        monkeypatch.setattr(Member, "forward", waiting)
        return seen

    return watch


IN_A_THREAD = ("tokenised", False)


def test_the_next_part_is_tokenised_while_the_first_is_encoded(cuda, tiny_encoder, texts, monkeypatch, order_of_events):
    model = Model.load({"main": tiny_encoder / "main"}).to(cuda)
    expected = encode(model, texts, ["en"] * len(texts), {"pooling": "mean"})
    monkeypatch.setattr(module, "PART", 16)
    seen = order_of_events(2)
    found = encode(model, texts, ["en"] * len(texts), {"pooling": "mean"})
    assert np.abs(found - expected).max() < 1e-5
    assert seen[:3] == [IN_A_THREAD, IN_A_THREAD, "encoded"]  # never two parts ahead
    assert seen.count(IN_A_THREAD) == 3


def test_parts_hold_sentences_of_like_length(cuda, tiny_encoder, texts, monkeypatch):
    monkeypatch.setattr(module, "PART", 10)
    model = Model.load({"main": tiny_encoder / "main"}).to(cuda)
    for pairs in (None, texts[::-1]):
        parts = list(module.tokenised(model, texts, ["en"] * len(texts), {}, pairs))
        letters = np.array([len(text) + (len(pairs[row]) if pairs else 0) for row, text in enumerate(texts)])
        assert np.concatenate([part.rows for part in parts]).tolist() == np.argsort(-letters, kind="stable").tolist()
        assert [len(part.tokens.ids) for part in parts] == [10, 10, 10, 10]


def test_the_next_shard_is_tokenised_while_the_first_is_encoded(cuda, embed, monkeypatch, order_of_events):
    whole, _ = embed("whole.npy")
    monkeypatch.setattr(matrices, "SHARD", 8)
    seen = order_of_events(2)
    found, counts = embed("x.npy")
    assert np.abs(found - whole).max() < 1e-5
    assert counts["rows"] == len(whole)
    assert seen[:3] == [IN_A_THREAD, IN_A_THREAD, "encoded"]
    assert seen.count(IN_A_THREAD) == 5


@pytest.mark.parametrize("error", [InputError("bad"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["tokenise", "forward"])
def test_what_ends_an_encoding_comes_at_its_turn_and_the_next_run_goes_on(cuda, embed, monkeypatch, error, where):
    """As in a run that tokenises each shard at its turn."""
    whole, _ = embed("whole.npy")
    monkeypatch.setattr(matrices, "SHARD", 8)
    real, calls, encoded = getattr(Member, where), [], []

    def third_ends(self, *given):
        calls.append(1)
        if len(calls) == 3:
            raise error
        return real(self, *given)

    added = matrices._Shards.add
    monkeypatch.setattr(matrices._Shards, "add", lambda self, start, counts: encoded.append(start) or added(self, start, counts))
    with monkeypatch.context() as patch:
        patch.setattr(Member, where, third_ends)
        with pytest.raises(type(error)):
            embed("x.npy")
    assert encoded == [0, 8]
    found, _ = embed("x.npy")
    assert encoded == [0, 8, 16, 24, 32]
    assert np.abs(found - whole).max() < 1e-5


PRETEND = """
import pytest
from pretend_cuda import pretend_cuda

held = pretend_cuda(pytest.MonkeyPatch(), count=2)
held.__enter__()
"""
"""What a process of Python does first, to see the pretend devices of the one that starts it."""


@pytest.fixture
def two_gpus_in_processes(two_gpus, tmp_path, monkeypatch):
    """The names of two CUDA devices that processes see, too."""
    if isinstance(torch.zeros(1, device=two_gpus[0]), PretendTensor):
        (tmp_path / "pretend").mkdir()
        (tmp_path / "pretend" / "sitecustomize.py").write_text(PRETEND)
        monkeypatch.syspath_prepend(tmp_path / "pretend")
    return two_gpus


def test_two_gpus_encode_side_by_side_and_go_on_when_one_process_was_killed(two_gpus_in_processes, embed, tiny_encoder, texts, monkeypatch):
    monkeypatch.setattr(matrices, "SHARD", 8)
    asked, devices = [], set()

    class KilledAtItsSecond(Worker):
        def __init__(self, work, given, *rest):
            devices.add(given["device"])
            super().__init__(work, given, *rest)

        def ask(self, starts):
            if starts and starts[0] not in (0, 8) and not asked:
                asked.append(starts)
                self.process.kill()
            return super().ask(starts)

    monkeypatch.setattr(shards, "Worker", KilledAtItsSecond)
    with pytest.raises(ResourceError, match="status -9"):
        embed("x.npy")
    found, counts = embed("x.npy")
    expected = encode(Model.load({"main": tiny_encoder / "main"}), texts, ["en"] * len(texts), READOUT)
    assert np.abs(found - expected).max() < 1e-5
    assert (counts["device"], counts["devices"], devices) == ("cuda", 2, set(two_gpus_in_processes))


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
    features = member.collate(tokens.ids, None, range(len(texts)))
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
