"""The pretend device computes what a CPU does and refuses what a GPU does."""

from __future__ import annotations

import copy

import pytest
import torch
from pretend_cuda import pretend_cuda
from torch import nn


@pytest.fixture
def cuda(monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU: nothing is pretended")
    with pretend_cuda(monkeypatch, count=2):
        yield "cuda"


REFUSED = {
    "a sum of devices": lambda gpu, cpu: gpu + cpu,
    "a sum of GPUs": lambda gpu, cpu: gpu + gpu.to("cuda:1"),
    "a product of devices": lambda gpu, cpu: gpu @ cpu,
    "a list of devices": lambda gpu, cpu: torch.cat([gpu, cpu]),
    "a number of the device into a CPU's tensor": lambda gpu, cpu: cpu.add_(gpu[0, 0]),
    "a GPU's indices for a CPU's tensor": lambda gpu, cpu: cpu[gpu.argmax(0)],
    "a CPU's values into a GPU's tensor": lambda gpu, cpu: gpu.index_put_((torch.tensor([0, 1]),), cpu[:2]),
    "a CPU's indices of rows": lambda gpu, cpu: gpu.index_select(0, torch.tensor([0])),
    "a result elsewhere": lambda gpu, cpu: torch.mm(gpu, gpu, out=cpu),
    "NumPy": lambda gpu, cpu: gpu.numpy(),
    "an array of NumPy": lambda gpu, cpu: __import__("numpy").asarray(gpu),
    "a product of integers": lambda gpu, cpu: gpu.long() @ gpu.long(),
    "a CPU's generator": lambda gpu, cpu: gpu.normal_(generator=torch.Generator()),
    "a CPU's kernel": lambda gpu, cpu: torch.ops.mkldnn._linear_pointwise(gpu, gpu, None, "none", [], ""),
}
ALLOWED = {
    "a number of the CPU": lambda gpu, cpu: gpu * torch.tensor(2.0),
    "a CPU's indices": lambda gpu, cpu: gpu[torch.tensor([0, 2])],
    "a number of the CPU put in": lambda gpu, cpu: gpu.index_put((torch.tensor([0]),), torch.tensor(1.0)),
    "a copy": lambda gpu, cpu: torch.empty_like(gpu).copy_(cpu),
    "a choice of numbers": lambda gpu, cpu: torch.where(gpu > 0, gpu, torch.tensor(0.0)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_gpu_refuses_is_refused(cuda, case):
    own = torch.arange(9.0).view(3, 3)
    with pytest.raises((RuntimeError, TypeError, NotImplementedError)):
        REFUSED[case](own.to(cuda), own)


@pytest.mark.parametrize("case", ALLOWED)
def test_what_a_gpu_allows_is_computed(cuda, case):
    own = torch.arange(9.0).view(3, 3)
    found = ALLOWED[case](own.to(cuda), own)
    assert found.device == torch.device("cuda:0")
    assert torch.equal(found.cpu(), ALLOWED[case](own, own))


def test_results_stay_on_the_device_and_come_back(cuda):
    made = torch.tensor([[1, 2], [3, 4]], device=cuda)
    assert made.device == torch.arange(3, device=cuda).device == torch.ones(2).to(cuda).sum().device == torch.device("cuda:0")
    assert made.tolist() == [[1, 2], [3, 4]]
    assert made.float().mean().item() == 2.5
    assert made.cpu().device.type == torch.from_numpy(made.cpu().numpy()).device.type == "cpu"


def test_gradients_are_a_cpus(cuda):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Embedding(10, 8, sparse=True), nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    moved = copy.deepcopy(plain)
    first = moved[1].weight
    moved.to(cuda)
    assert moved[1].weight is first
    assert isinstance(first, nn.Parameter)
    ids = torch.tensor([[1, 2, 3], [4, 1, 1]])
    plain(ids).square().sum().backward()
    moved(ids.to(cuda)).square().sum().backward()
    for one, other in zip(plain.parameters(), moved.parameters(), strict=True):
        assert other.grad.device == torch.device("cuda:0")
        assert torch.equal(one.grad.to_dense(), other.grad.to_dense().cpu())


def attended(qkv, lengths, dropout, device):
    """Return flash attention's states of packed sentences; `qkv` is bfloat16 [tokens, 3, heads, d]."""
    starts = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32, device=device)
    query, key, value = qkv.unbind(1)
    return torch.ops.aten._flash_attention_forward(query, key, value, starts, starts, max(lengths), max(lengths), dropout, False, False)[0]


def test_flash_attention_is_softmax_over_each_sentence(cuda):
    draw, lengths = torch.Generator().manual_seed(3), [5, 3, 1]
    qkv = torch.randn(9, 3, 2, 4, generator=draw).bfloat16()
    slope = torch.randn(9, 2, 4, generator=draw).bfloat16()
    moved, plain = qkv.to(cuda).requires_grad_(), qkv.clone().float().requires_grad_()
    found = attended(moved, lengths, 0.0, cuda)
    parts = [part.permute(1, 2, 0, 3) for part in plain.split(lengths)]
    expected = torch.cat([nn.functional.scaled_dot_product_attention(*part.unbind(0)).transpose(0, 1) for part in parts])
    found.backward(slope.to(cuda))
    expected.backward(slope.float())
    assert torch.allclose(found.cpu().float(), expected, atol=0.02)
    assert torch.allclose(moved.grad.cpu().float(), plain.grad, atol=0.05)


def test_dropout_of_flash_attention_drops_the_same_weights_in_both_passes(cuda):
    """Of sentences of one token the only weight is 1: it is dropped, or grows."""
    qkv = torch.randn(400, 3, 2, 4, generator=torch.Generator().manual_seed(3)).bfloat16().to(cuda).requires_grad_()
    found = attended(qkv, [1] * 400, 0.25, cuda)
    found.backward(torch.ones_like(found))
    kept = (found != 0).all(-1)
    assert 0.7 < kept.float().mean().item() < 0.8
    assert torch.equal(qkv.grad[:, 2], (kept[..., None] / 0.75).bfloat16().expand(-1, -1, 4))


def test_autocast_of_the_device_casts(cuda):
    left = torch.randn(4, 4).to(cuda)
    with torch.autocast("cuda", torch.bfloat16):
        assert (left @ left).dtype == torch.bfloat16
        assert (left @ left).softmax(-1).dtype == torch.float32


def test_the_device_has_draws_of_its_own(cuda):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = torch.rand(3, device=cuda)
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(3, device=cuda), first)
    assert not torch.equal(torch.rand(3, device=cuda), first)
