"""Attention over packed sentences on a GPU: who takes which, and that the whole pass stays on its device."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from transformers import XLMRobertaConfig, XLMRobertaModel

from crosslign.encoders.packed import fused, training, varlen
from crosslign.encoders.packed.packing import Layout
from crosslign.encoders.packed.training import PackedTraining, group_by_length, trains_packed
from crosslign.errors import ResourceError

CPU = torch.device("cpu")


def _plain(qkv, layout, heads, p):
    """One sentence after another, as the layout says."""
    size = qkv.shape[1] // 3 // heads
    states = []
    for start, end in pairwise(layout.starts.tolist()):
        query, key, value = qkv[start:end].view(end - start, 3, heads, size).permute(1, 2, 0, 3)
        states.append(functional.scaled_dot_product_attention(query, key, value).transpose(0, 1).flatten(1))
    return torch.cat(states)


@pytest.mark.parametrize(
    ("lengths", "classes"),
    [
        ([128, 65, 64, 33, 32, 1], ((0, 2, 128), (2, 2, 64), (4, 2, 32))),
        ([40, 40], ((0, 2, 64),)),
        ([200, 129, 128, 3], ((2, 1, 128), (3, 1, 32))),
    ],
)
def test_each_sentence_is_in_the_smallest_tile_that_holds_it(lengths, classes):
    layout = Layout.of(np.array(lengths), CPU)
    assert layout.classes == classes
    assert layout.longest == lengths[0]
    assert layout.starts.tolist() == [0, *np.cumsum(lengths)]
    assert layout.starts.dtype == torch.int32


@pytest.mark.parametrize("lengths", [[7, 3], [300, 140], [150, 130, 128, 40, 2]])
@pytest.mark.parametrize("short", [True, False])
def test_long_and_short_sentences_meet_in_one_result(monkeypatch, lengths, short):
    taken = {"flash": [], "fused": []}

    def noted(name):
        def attention(qkv, layout, heads, p):
            taken[name] += layout.starts.diff().tolist()
            return _plain(qkv, layout, heads, p)

        return attention

    monkeypatch.setattr(varlen, "flash", noted("flash"))
    monkeypatch.setattr(fused, "attention", noted("fused"))
    torch.manual_seed(1)
    qkv = torch.randn(sum(lengths), 3 * 2 * 8, dtype=torch.float64)
    states = varlen.attention_of(np.array(lengths), CPU, short)(qkv, 2, 0.0)
    expected = training._attention(qkv, 2, 0.0, group_by_length(lengths))
    assert torch.allclose(states, expected, atol=1e-5)
    assert taken["fused"] == [length for length in lengths if short and length <= 128]
    assert taken["flash"] == [length for length in lengths if not short or length > 128]


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 64), (torch.bfloat16, 60), (torch.bfloat16, 512), (torch.bfloat16, 64)])
def test_a_cpu_never_has_flash_attention(dtype, size):
    assert not training.has_flash(dtype, size, CPU)


SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128, "vocab_size": 90}


@pytest.fixture
def on_a_gpu(monkeypatch):
    """A backbone whose tensors have a device, a shape and no values, and a batch for it; flash attention is said to be there."""
    monkeypatch.setattr(training, "has_flash", lambda *_: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # tensors without values cannot be pinned for a real one
    backbone = XLMRobertaModel(XLMRobertaConfig(**SIZES), add_pooling_layer=False).train()
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        for module in backbone.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    module._parameters[name] = nn.Parameter(torch.empty(parameter.shape, device="cuda"))
        yield backbone, [torch.empty(4, 150, dtype=torch.int64, device="cuda") for _ in range(2)]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("failing", ["add_norm", "gelu", "both"])
def test_states_stay_on_the_gpu(monkeypatch, on_a_gpu, precision, failing):
    """Also where kernels fail: torch's functions take their places one by one."""
    left = {"add_norm": ["gelu"], "gelu": ["add_norm"], "both": []}[failing]
    monkeypatch.setattr(fused, "working", lambda *_: frozenset(left))
    monkeypatch.setattr(fused, "gelu", training._gelu)
    monkeypatch.setattr(fused, "add_norm", training._add_norm)
    backbone, (ids, mask) = on_a_gpu
    assert trains_packed(backbone, precision, "auto")
    output = PackedTraining(backbone, precision, lengths=np.array([3, 19, 150, 17]))(ids, mask, output_hidden_states=True)
    for states in (output.last_hidden_state, *output.hidden_states):
        assert (states.shape, states.dtype, states.device.type) == ((4, 150, 64), torch.float32, "cuda")


def test_unless_it_is_asked_for_a_gpu_runs_the_backbone_as_it_is(on_a_gpu):
    backbone, _ = on_a_gpu
    assert not trains_packed(backbone, "bf16", "off")
    assert trains_packed(XLMRobertaModel(XLMRobertaConfig(**SIZES)), "bf16", "off"), "on a CPU there are no kernels of ours to be off"


def test_a_kernel_that_must_work_and_does_not_ends_the_training(monkeypatch, on_a_gpu):
    monkeypatch.setattr(fused, "working", lambda *_: frozenset({"gelu", "attention"}))
    backbone, (ids, mask) = on_a_gpu
    with pytest.raises(ResourceError, match="add_norm"):
        PackedTraining(backbone, "bf16", lengths=np.array([3, 19, 150, 17]), kernels="on")(ids, mask)


def test_torch_takes_the_place_of_a_kernel():
    """The same function as the layer's own, of values in half precision."""
    torch.manual_seed(2)
    branch, bias, states, norm = torch.randn(5, 8).bfloat16(), torch.randn(8), torch.randn(5, 8), nn.LayerNorm(8)
    out, half = training._add_norm(branch, bias, states, norm, 0.0)
    assert torch.equal(out, norm(branch.float() + bias + states))
    assert torch.equal(half, out.bfloat16())
    assert torch.equal(training._gelu(branch, bias), functional.gelu(branch.float() + bias).bfloat16())
