"""Decoder encoders: last-token pooling with an instruction gives sentence-transformers' vectors on a tiny random Qwen3."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from crosslign.encoders.encode import encode
from crosslign.encoders.model import Model
from crosslign.encoders.sentence_transformers_folder import read_modules

TEXTS = [
    "The dog sleeps on the warm stone.",
    "Bread.",
    "A longer sentence that is cut because it has more tokens than are read: one, two, three, four.",
]
INSTRUCTION = "Instruct: Retrieve the translation.\nQuery:"


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """A SentenceTransformer of the shape of Qwen3-Embedding: byte-level BPE with an end token, causal blocks, last token, unit length."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

    end = "<|endoftext|>"
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator([*TEXTS, INSTRUCTION], trainers.BpeTrainer(vocab_size=320, special_tokens=[end], initial_alphabet=alphabet))
    backend.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, backend.token_to_id(end))])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=end, pad_token=end, padding_side="left")
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
    torch.manual_seed(5)
    config = Qwen3Config(vocab_size=len(tokenizer), head_dim=8, max_position_embeddings=128, initializer_range=0.3, **sizes)
    folder = tmp_path_factory.mktemp("qwen3")
    Qwen3Model(config).eval().save_pretrained(folder / "plain")
    tokenizer.save_pretrained(folder / "plain")
    layers = [Transformer(str(folder / "plain"), max_seq_length=24), Pooling(32, "lasttoken"), Normalize()]
    model = SentenceTransformer(modules=layers, device="cpu", prompts={"query": INSTRUCTION}, default_prompt_name="query")
    model.save(str(folder / "whole"))
    return model, folder / "whole"


def test_the_last_token_with_an_instruction_is_sentence_transformers(judge, tmp_path):
    from sentence_transformers import SentenceTransformer

    theirs, folder = judge
    readout = read_modules(folder)
    assert (readout["pooling"], readout["prefix"], readout["max_length"], readout["normalise"]) == ("last", INSTRUCTION, 24, True)
    model = Model.load({"main": folder})
    ours = encode(model, TEXTS, ["en"] * 3, readout)
    assert np.abs(theirs.encode(TEXTS) - ours).max() < 1e-5
    plain = encode(model, TEXTS, ["en"] * 3, readout | {"prefix": ""})
    assert np.abs(theirs.encode(TEXTS, prompt="") - plain).max() < 1e-5
    assert np.abs(plain - ours).max() > 0.01
    model.save(tmp_path, readout)
    assert np.abs(SentenceTransformer(str(tmp_path / "main"), device="cpu").encode(TEXTS) - ours).max() < 1e-5


def test_a_decoder_is_trained(judge):
    from torch.nn.functional import normalize

    model = Model.load({"main": judge[1]})
    member = model.member("main")
    tokens = member.tokenise(TEXTS, None, 24)
    vectors = normalize(member(member.collate(tokens.ids, None, range(len(TEXTS))), "last"), dim=1)
    (vectors @ vectors.T).sum().backward()
    assert all(parameter.grad is not None for name, parameter in member.backbone.named_parameters() if "layers" in name)
