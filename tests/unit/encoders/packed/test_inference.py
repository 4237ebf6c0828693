"""The pass without padding: transformers' own numbers, for every backbone that it takes, and only those."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel, XLMRobertaConfig, XLMRobertaModel

from crosslign.encoders.packed.inference import WRITTEN_OUT, PackedBackbone, supported

SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 90}
LONG = WRITTEN_OUT
KINDS = {"bert": (BertConfig, BertModel), "roberta": (RobertaConfig, RobertaModel), "xlm-r": (XLMRobertaConfig, XLMRobertaModel)}


def _backbone(kind, **options):
    config, model = KINDS[kind]
    torch.manual_seed(3)
    built = model(config(**SIZES, **options), **({} if kind == "bert" else {"add_pooling_layer": False})).eval()
    with torch.no_grad():  # the usual start, 0.02, leaves attention almost flat
        for weight in built.parameters():
            weight.add_(torch.randn_like(weight) * 0.15)
    return built


def _batch(lengths, pad):
    """Random ids, right-padded, rows in the given order."""
    width = max(lengths)
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    ids = torch.randint(5, 90, mask.shape).masked_fill(~mask, pad)
    return {"input_ids": ids, "attention_mask": mask.long()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [[7], [5, 5, 5], [3, 9, 4, 9, 1, 3], [LONG + 20, 6, LONG, LONG + 20, LONG + 1]])
def test_states_are_those_of_transformers(kind, lengths):
    backbone = _backbone(kind)
    features = _batch(lengths, backbone.config.pad_token_id)
    if len(set(lengths)) == 1:
        del features["attention_mask"]
    assert supported(backbone, "fp32")
    with torch.inference_mode():
        expected = backbone(**features, output_hidden_states=True)
        got = PackedBackbone(backbone, "fp32")(**features, output_hidden_states=True)
    assert len(got.hidden_states) == len(expected.hidden_states) == 4
    for ours, theirs in zip(
        (*got.hidden_states, got.last_hidden_state), (*expected.hidden_states, expected.last_hidden_state), strict=True
    ):
        for row, length in enumerate(lengths):
            assert torch.allclose(ours[row, :length], theirs[row, :length], atol=2e-5)
    if kind == "bert":
        assert torch.allclose(got.pooler_output, expected.pooler_output, atol=2e-5)
    else:
        assert got.pooler_output is None


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_without_the_blocks_above_an_inner_layer_its_states_are_the_same(blocks):
    backbone, lengths = _backbone("bert"), [3, 9, 4]
    features = _batch(lengths, 0)
    packed = PackedBackbone(backbone, "fp32", blocks=blocks)
    with torch.inference_mode():
        expected = backbone(**features, output_hidden_states=True).hidden_states
        got = packed(**features, output_hidden_states=True)
    assert len(packed.layers) == len(got.hidden_states) - 1 == blocks
    for row, length in enumerate(lengths):
        assert torch.allclose(got.hidden_states[blocks][row, :length], expected[blocks][row, :length], atol=2e-5)
    assert got.pooler_output is None  # it reads the last block


def test_second_segments_enter():
    backbone = _backbone("bert")
    features = _batch([6, 9, 2], 0)
    features["token_type_ids"] = (torch.arange(9) > 2).long().expand(3, 9) * features["attention_mask"]
    with torch.inference_mode():
        got = PackedBackbone(backbone, "fp32")(**features).last_hidden_state
        expected = backbone(**features).last_hidden_state
        plain = backbone(**{**features, "token_type_ids": torch.zeros_like(features["token_type_ids"])}).last_hidden_state
    assert torch.allclose(got[1], expected[1], atol=2e-5)
    assert not torch.allclose(got[1], plain[1], atol=1e-2)


@pytest.mark.skipif(not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="no bf16 kernels on this CPU")
def test_bf16_is_near_and_no_copy_of_fp32():
    backbone, features = _backbone("xlm-r"), _batch([8, 30, WRITTEN_OUT + 9], 1)
    with torch.inference_mode():
        low, full = (PackedBackbone(backbone, precision)(**features).last_hidden_state for precision in ("bf16", "fp32"))
    assert low.dtype == torch.float32
    for row, length in enumerate([8, 30, WRITTEN_OUT + 9]):
        assert not torch.equal(low[row, :length], full[row, :length])
        assert torch.cosine_similarity(low[row, :length], full[row, :length], dim=1).min() > 0.999


def test_what_was_changed_by_hand_is_left_to_transformers():
    class Adapted(nn.Linear):
        pass

    backbone = _backbone("bert")
    assert not supported(backbone, "fp16")
    assert not supported(_backbone("bert", hidden_act="relu"), "fp32")
    assert not supported(_backbone("bert").to(torch.bfloat16), "fp32")
    assert not supported(nn.Linear(2, 2), "fp32")
    backbone.encoder.layer[1].attention.self.query = Adapted(32, 32)
    assert not supported(backbone, "fp32")
