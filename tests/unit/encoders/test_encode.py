"""Encoding: order, batches, memory, refusals, and the matrix of an evaluation corpus."""

from __future__ import annotations

import sys
from itertools import pairwise
from threading import get_ident

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.encoders import encode as module
from crosslign.encoders.encode import apply_head, encode, encode_counted, token_batches
from crosslign.encoders.matrices import embed_texts
from crosslign.encoders.model import Member
from crosslign.encoders.tokens import tokenise
from crosslign.errors import InputError, ResourceError
from crosslign.files import write_rows

MEAN = {"pooling": "mean", "layer": -1, "max_length": 64, "normalise": True, "precision": "fp32", "prefix": ""}


@pytest.fixture
def texts(sentence_pairs):
    return [text for pair in sentence_pairs for text in pair]


def _encode(model, texts, token_budget=module.TOKEN_BUDGET, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TOKEN_BUDGET", token_budget)
        return encode(model, texts, ["en"] * len(texts), {**MEAN, **options.pop("readout", {})}, **options)


def test_vectors_have_unit_length_and_type(tiny_model, texts):
    vectors = _encode(tiny_model, texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), 32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-6)
    raw = _encode(tiny_model, texts, readout={"normalise": False})
    assert np.abs(np.linalg.norm(raw, axis=1) - 1).min() > 0.1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize(("precision", "apart"), [("fp32", 1e-5), ("bf16", 2e-2), ("fp16", 2e-3)])
def test_vectors_of_a_gpu_are_those_of_the_cpu(tiny_model, texts, precision, apart):
    expected = _encode(tiny_model, texts)
    found = _encode(tiny_model.to("cuda"), texts, token_budget=2, readout={"precision": precision})  # 64 tokens a batch there
    assert np.abs(found - expected).max() < apart


@settings(max_examples=15)
@given(data=st.data(), budget=st.integers(1, 400))
def test_order_and_batch_size_do_not_matter(tiny_model, texts, data, budget):
    order = data.draw(st.permutations(range(len(texts))))
    expected = _encode(tiny_model, texts)
    shuffled = _encode(tiny_model, [texts[i] for i in order], token_budget=budget)
    assert np.abs(shuffled - expected[order]).max() < 1e-5


def test_equal_input_gives_equal_bytes_and_the_mode_comes_back(tiny_model, texts):
    tiny_model.train()
    first = _encode(tiny_model, texts)
    assert np.array_equal(first, _encode(tiny_model, texts))
    assert tiny_model.training
    assert tiny_model.member("main").backbone.training


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 200))
def test_batches_keep_the_budget_and_lose_nothing(lengths, budget):
    sizes = np.array(lengths)
    order = np.argsort(-sizes, kind="stable")
    batches = list(token_batches(sizes, order, budget))
    assert np.concatenate(batches).tolist() == order.tolist()
    assert all(len(b) == 1 or len(b) * sizes[b].max() <= budget for b in batches)


@given(
    st.lists(st.integers(1, 90), min_size=1, max_size=80),
    st.integers(1, 2000),
    st.sampled_from([1, 50, 400]),
)
@settings(max_examples=60, deadline=None)
def test_batches_of_like_length_are_small_or_have_little_padding(lengths, budget, least):
    sizes = np.array(lengths)
    order = np.argsort(-sizes, kind="stable")
    batches = list(token_batches(sizes, order, budget, least))
    assert np.concatenate(batches).tolist() == order.tolist()
    for batch in batches:
        longest = sizes[batch[0]]
        assert len(batch) == 1 or len(batch) * longest <= budget
        assert len(batch) * longest <= least or sizes[batch[-1]] >= 0.8 * longest
    for batch, following in pairwise(batches):  # none ends before it must
        longest, more = sizes[batch[0]], len(batch) + 1
        assert more * longest > budget or (more * longest > least and sizes[following[0]] < 0.8 * longest)


def test_truncation_is_counted_and_happens(tiny_model, texts):
    _, none = encode_counted(tiny_model, texts, ["en"] * len(texts), MEAN)
    _, some = encode_counted(tiny_model, texts, ["en"] * len(texts), MEAN | {"max_length": 6})
    tokenizer = tiny_model.member("main").tokenizer
    assert none == 0
    assert some == sum(len(tokenizer(text).input_ids) > 6 for text in texts) > 0


def test_tokens_are_those_of_the_tokenizer(tiny_model, texts):
    tokenizer, others = tiny_model.member("main").tokenizer, texts[::-1]
    for seconds in (None, others):
        expected = tokenizer(texts, seconds, truncation=True, max_length=9)
        found = tokenise(tokenizer, texts, seconds, 9)
        assert [ids.tolist() for ids in found.ids] == expected["input_ids"]
        assert found.segments is None or [row.tolist() for row in found.segments] == expected["token_type_ids"]
        assert (found.segments is None) == (seconds is None)
        assert found.truncated > 0


def test_prefix_is_put_before_each_text(tiny_model):
    assert np.array_equal(_encode(tiny_model, ["Ja."], readout={"prefix": "The dog "}), _encode(tiny_model, ["The dog Ja."]))


def test_pair_texts_enter_the_vector(tiny_model):
    first, second = encode(tiny_model, ["Ja.", "Ja."], ["de", "de"], MEAN, pair_texts=["Yes.", "It rained all night."])
    assert not np.allclose(first, second)


def test_a_batch_is_read_after_the_next_one_began(tiny_model, texts, monkeypatch):
    """A GPU fills a batch's vectors while the next batch is made ready; who reads them earlier makes both wait."""
    expected, real, late = _encode(tiny_model, texts, token_budget=60), module._encode_rows, []

    def encode_rows(*given):
        for vectors, values in late:
            vectors.copy_(values)
        values = real(*given)
        is_last = sum(len(vectors) for vectors, _ in late) + len(values) == len(texts)
        late.append((values if is_last else torch.zeros_like(values), values))
        return late[-1][0]

    monkeypatch.setattr(module, "_encode_rows", encode_rows)
    assert np.array_equal(_encode(tiny_model, texts, token_budget=60), expected)
    assert len(late) > 2


def test_the_weights_are_cast_once_for_all_batches(tiny_model, texts, monkeypatch):
    opened, batches, real, forward = [], [], module.autocast, Member.forward
    monkeypatch.setattr(module, "autocast", lambda *given: opened.append(given) or real(*given))
    monkeypatch.setattr(Member, "forward", lambda self, *given: batches.append(1) or forward(self, *given))
    _encode(tiny_model, texts, token_budget=60, readout={"precision": "fp16"})
    assert len(batches) > 2
    assert opened == [("fp16", tiny_model.device)]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_out_of_memory_halves_the_batch_and_goes_on(tiny_model, texts, monkeypatch, error):
    sizes, freed = [], []
    monkeypatch.setattr(module, "free_memory", lambda: freed.append(sys.exception()))
    real = Member.forward

    def forward(self, features, *rest):
        sizes.append(len(features["input_ids"]))
        if sizes[-1] > 5:
            raise error
        return real(self, features, *rest)

    expected = _encode(tiny_model, texts)
    monkeypatch.setattr(Member, "forward", forward)
    assert np.abs(_encode(tiny_model, texts) - expected).max() < 1e-5
    assert freed == [None] * sum(size > 5 for size in sizes)  # after the exception, which holds the tensors of what failed
    assert freed


def test_one_sentence_too_many_is_a_resource_error(tiny_model, monkeypatch):
    monkeypatch.setattr(Member, "forward", lambda *_: (_ for _ in ()).throw(RuntimeError("DefaultCPUAllocator: can't allocate memory")))
    with pytest.raises(ResourceError, match="max_length"):
        _encode(tiny_model, ["Ja."])


def test_other_failures_are_not_taken_for_lack_of_memory(tiny_model, monkeypatch):
    monkeypatch.setattr(Member, "forward", lambda *_: (_ for _ in ()).throw(RuntimeError("size mismatch")))
    with pytest.raises(RuntimeError, match="size mismatch"):
        _encode(tiny_model, ["Ja."])


@pytest.mark.parametrize(("value", "why"), [(float("nan"), "NaN"), (0.0, "zero")])
def test_unusable_vectors_name_their_text(tiny_model, monkeypatch, value, why):
    real = Member.forward

    def forward(self, features, *rest):
        vectors = real(self, features, *rest)
        return torch.where((features["input_ids"].shape[1] > 8) & torch.ones_like(vectors, dtype=torch.bool), value, vectors)

    monkeypatch.setattr(Member, "forward", forward)
    with pytest.raises(InputError, match=f"{why}.* row 1.*The train to the city"):
        _encode(tiny_model, ["Ja.", "The train to the city is late again."], readout={"normalise": False}, token_budget=1)


def _text_set(path, rows):
    ids, langs, sentences, pairs = zip(*rows, strict=True)
    write_rows(path, pa.table({"text_id": ids, "lang": langs, "text": sentences, "pair_text": pa.array(pairs, pa.string())}), "texts")


def test_text_set_becomes_a_matrix_in_its_order(tiny_model, tiny_encoder, tmp_path, texts, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)  # the bytes are those of a CPU
    _text_set(tmp_path / "texts.parquet", [(f"t{i}", "en", text, None) for i, text in enumerate(texts)])
    counts = embed_texts({"main": tiny_encoder / "main"}, tmp_path / "texts.parquet", MEAN | {"max_length": 6}, tmp_path / "out" / "m.npy")
    matrix = np.load(tmp_path / "out" / "m.npy", allow_pickle=False)
    assert np.array_equal(matrix, _encode(tiny_model, texts, readout={"max_length": 6}))
    assert counts["rows"] == len(texts)
    assert counts["dimension"] == 32
    assert counts["truncated"] > 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["m.npy"]


def test_text_set_without_member_or_with_half_the_pairs_is_refused(tiny_encoder, tmp_path):
    _text_set(tmp_path / "texts.parquet", [("t0", "en", "Yes.", None), ("t1", "zh", "对", None)])
    with pytest.raises(InputError, match="'zh'"):
        embed_texts({"en": tiny_encoder / "main"}, tmp_path / "texts.parquet", MEAN, tmp_path / "m.npy")
    assert not (tmp_path / "m.npy").exists()
    _text_set(tmp_path / "half.parquet", [("t0", "en", "Yes.", "Ja."), ("t1", "en", "No.", None)])
    with pytest.raises(InputError, match=r"half\.parquet: .*pair_text; 1 of 2 "):
        embed_texts({"main": tiny_encoder / "main"}, tmp_path / "half.parquet", MEAN, tmp_path / "m.npy")


def test_low_precision_is_near_full_precision(tiny_model, texts, monkeypatch):
    monkeypatch.setattr(module, "computed_in", lambda precision, device: precision)  # on any CPU, however slow it is
    low = _encode(tiny_model, texts, readout={"precision": "bf16"})
    full = _encode(tiny_model, texts)
    assert not np.array_equal(low, full)
    assert np.abs(low - full).max() < 0.02


def test_chunks_of_sentences_do_not_matter(tiny_model, texts, monkeypatch):
    expected, cut = encode_counted(tiny_model, texts, ["en"] * len(texts), MEAN | {"max_length": 6})
    monkeypatch.setattr(module, "CHUNK", 7)
    vectors, again = encode_counted(tiny_model, texts, ["en"] * len(texts), MEAN | {"max_length": 6})
    assert np.abs(vectors - expected).max() < 1e-5
    assert again == cut > 7


def test_a_cpu_tokenises_and_encodes_in_turns_in_one_thread(tiny_model, texts, monkeypatch):
    """Its cores are all at work, and two chunks of token ids would take twice the memory."""
    seen, tokenise_, forward = [], Member.tokenise, Member.forward
    monkeypatch.setattr(module, "CHUNK", 20)
    monkeypatch.setattr(Member, "tokenise", lambda self, *given: seen.append(("tokenise", get_ident())) or tokenise_(self, *given))
    monkeypatch.setattr(Member, "forward", lambda self, *given: seen.append(("forward", get_ident())) or forward(self, *given))
    _encode(tiny_model, texts)
    assert seen == [("tokenise", get_ident()), ("forward", get_ident())] * 2


@pytest.mark.parametrize("training", [True, False])
def test_a_head_is_applied_without_dropout_and_its_mode_comes_back(training):
    """A look at dev data in the middle of a training must not end the head's dropout."""
    dense = torch.nn.Linear(4, 3)
    head = torch.nn.Sequential(torch.nn.Dropout(0.5), dense).train(training)
    vectors = np.ones((5, 4), dtype=np.float32)
    assert np.allclose(apply_head(head, vectors), dense(torch.ones(5, 4)).detach().numpy(), atol=1e-6)
    assert head.training is training
    assert head[0].training is training
