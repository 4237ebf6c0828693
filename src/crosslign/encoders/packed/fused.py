"""The steps between the products of a transformer's block as single passes over memory, with gradient, by Triton's kernels on a GPU.

`working` tells which can be used: it compiles each and compares it with torch's own function once a process, so that a machine without
Triton or a compiler, or on which a kernel fails, trains with torch's function instead.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from crosslign.encoders.packed.packing import Layout

PROGRAMS = 528
"""Programs that share the tokens of a sum: four for each multiprocessor of an H100. A fixed number, so that sums have one order."""
SPAN = 1024
"""Columns that a program of GELU takes."""
SELDOM = 1e-12
"""Dropout probability so small that no element is dropped: checks without dropout run the same kernels as training."""
HALVES = (torch.bfloat16, torch.float16)
SIZES = (16, 32, 64, 128)
"""Sizes of heads that the attention kernel takes."""

log = logging.getLogger(__name__)


def new_seed() -> int:
    """Return a seed for one use of dropout, drawn from torch's generator on the CPU: nothing waits for the GPU."""
    return int(torch.randint(1 << 30, ()))


@cache
def _drop(p: float) -> dict[str, Any]:
    """Return how a kernel drops with probability p: the least draw of 32 bits that is kept, and what kept elements are multiplied by."""
    return {"least": min(round(p * (1 << 32)), (1 << 32) - 1), "factor": 1.0 / (1.0 - p) if p < 1.0 else 0.0, "DROP": p > 0}


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


@cache
def _launch(number: int) -> dict[str, int]:
    """Return how many warps hold a row of so many elements, eight to a thread."""
    return {"num_warps": min(16, max(1, number // 256))}


class _AddNorm(Function):
    @staticmethod
    def forward(
        ctx: Any, branch: Tensor, bias: Tensor, states: Tensor, gain: Tensor, shift: Tensor, epsilon: float, p: float, seed: int
    ) -> tuple[Tensor, Tensor]:
        from crosslign.encoders.packed import kernels

        tokens, width = states.shape
        out, half = torch.empty_like(states), torch.empty_like(branch)
        means, scales = states.new_empty(tokens), states.new_empty(tokens)
        block = _power_of_two(width)
        kernels.norm_forward[(tokens,)](
            branch, bias, states, gain, shift, out, half, means, scales, width, epsilon, seed, BLOCK=block, **_drop(p), **_launch(block)
        )
        ctx.save_for_backward(branch, bias, states, gain, means, scales)
        ctx.p, ctx.seed = p, seed
        ctx.set_materialize_grads(False)
        return out, half

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:
        from crosslign.encoders.packed import kernels

        branch, bias, states, gain, means, scales = ctx.saved_tensors
        tokens, width = states.shape
        slope, half = slopes
        slope = torch.zeros_like(states) if slope is None else slope.contiguous()
        half = None if half is None else half.contiguous()
        of_branch, of_states = torch.empty_like(branch), torch.empty_like(states)
        sums = states.new_empty(PROGRAMS, 3, width)
        block = _power_of_two(width)
        kernels.norm_backward[(PROGRAMS,)](
            slope, slope if half is None else half, branch, bias, states, gain, means, scales, of_branch, of_states, sums,
            tokens, width, ctx.seed, BLOCK=block, BOTH=half is not None, **_drop(ctx.p), **_launch(block),
        )  # fmt: skip
        of_gain, of_shift, of_bias = sums.sum(0).unbind()
        return of_branch, of_bias, of_states, of_gain, of_shift, None, None, None


class _Gelu(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, bias: Tensor) -> Tensor:
        from crosslign.encoders.packed import kernels

        tokens, width = values.shape
        out = torch.empty_like(values)
        grid = (PROGRAMS, -(-width // SPAN))
        kernels.gelu_forward[grid](values, bias, out, tokens, width, BLOCK=SPAN, **_launch(SPAN))
        ctx.save_for_backward(values, bias)
        return out

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor]:
        from crosslign.encoders.packed import kernels

        values, bias = ctx.saved_tensors
        tokens, width = values.shape
        out, sums = torch.empty_like(values), bias.new_empty(PROGRAMS, width)
        grid = (PROGRAMS, -(-width // SPAN))
        kernels.gelu_backward[grid](slopes[0].contiguous(), values, bias, out, sums, tokens, width, BLOCK=SPAN, **_launch(SPAN))
        return out, sums.sum(0)


class _Attention(Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, layout: Layout, heads: int, p: float, seed: int) -> Tensor:
        from crosslign.encoders.packed import kernels

        out = qkv.new_empty(len(qkv), qkv.shape[1] // 3)
        ctx.save_for_backward(qkv)
        ctx.layout, ctx.heads, ctx.p, ctx.seed = layout, heads, p, seed
        _each(kernels.attention_forward, (qkv, out), layout, heads, p, seed)
        return out

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        from crosslign.encoders.packed import kernels

        (qkv,) = ctx.saved_tensors
        out = torch.empty_like(qkv)
        _each(kernels.attention_backward, (qkv, slopes[0].contiguous(), out), ctx.layout, ctx.heads, ctx.p, ctx.seed)
        return out, None, None, None, None


def _each(kernel: Any, tensors: tuple[Tensor, ...], layout: Layout, heads: int, p: float, seed: int) -> None:
    """Start an attention kernel for the sentences of each length class, which lie one behind another."""
    size = tensors[0].shape[1] // 3 // heads
    for first, count, block in layout.classes:
        kernel[(heads * count,)](
            *tensors, layout.starts, first, seed, scale=size**-0.5, HEADS=heads, SIZE=size, BLOCK=block, num_warps=block // 16, **_drop(p),
        )  # fmt: skip


def add_norm(branch: Tensor, bias: Tensor, states: Tensor, norm: nn.LayerNorm, p: float) -> tuple[Tensor, Tensor]:
    """Return the layer norm of states + dropout(branch + bias), twice: float32, and of the type of `branch`.

    Args:
        branch: [tokens, d], a product in half precision.
        bias: float32 [d].
        states: float32 [tokens, d].
        norm: the layer norm.
        p: probability of dropping an element; 0 where nothing is to be dropped.
    """
    seed = new_seed() if p > 0 else 0
    return _AddNorm.apply(branch, bias, states, norm.weight, norm.bias, norm.eps, p, seed)  # type: ignore[no-any-return,no-untyped-call]


def gelu(values: Tensor, bias: Tensor) -> Tensor:
    """Return GELU(values + bias), of values [tokens, d] in half precision and bias float32 [d]."""
    return _Gelu.apply(values, bias)  # type: ignore[no-any-return,no-untyped-call]


def attention(qkv: Tensor, layout: Layout, heads: int, p: float) -> Tensor:
    """Return softmax(query keyᵀ / √d) value within each sentence of at most 128 tokens.

    Args:
        qkv: [tokens, 3 * heads * d], query, key and value side by side, in half precision.
        layout: where the sentences lie.
        heads: number of heads.
        p: probability of dropping a weight.
    """
    return _Attention.apply(qkv, layout, heads, p, new_seed() if p > 0 else 0)  # type: ignore[no-any-return,no-untyped-call]


def _close(found: list[Tensor | None], expected: list[Tensor | None], tolerance: float = 0.02) -> bool:
    """Tell whether tensors are equal up to a share of their norm."""
    pairs = [(a.float(), b.float()) for a, b in zip(found, expected, strict=True) if a is not None and b is not None]
    return len(pairs) == len(expected) and all(bool((a - b).norm() <= tolerance * b.norm()) for a, b in pairs)


def _check_norm(device: torch.device, dtype: torch.dtype, heads: int, size: int, draw: torch.Generator, p: float = 0.25) -> bool:
    """Compare `add_norm` and its gradients; which elements were dropped is read off the branch's gradient."""
    tokens, width = 70, heads * size
    branch, states, slope = (torch.randn(tokens, width, generator=draw).to(device) for _ in range(3))
    branch = branch.to(dtype).requires_grad_()
    states, norm = states.requires_grad_(), nn.LayerNorm(width, device=device)
    bias = torch.linspace(-1.0, 1.0, width, device=device).requires_grad_()
    inputs = [branch, bias, states, norm.weight, norm.bias]
    out, half = add_norm(branch, bias, states, norm, p)
    found = torch.autograd.grad([out, half], inputs, [slope, slope.to(dtype)])
    kept = found[0] != 0
    expected = norm(states + (branch.float() + bias) * kept / (1 - p))
    wanted = torch.autograd.grad([expected], inputs, [slope + slope.to(dtype).float()])
    share = float(kept.float().mean())
    return abs(share - (1 - p)) < 0.02 + 2 / width and _close([out, half, *found], [expected, expected, *wanted])


def _check_gelu(device: torch.device, dtype: torch.dtype, heads: int, size: int, draw: torch.Generator) -> bool:
    """Compare `gelu` and its gradients."""
    values, slope = (torch.randn(70, 4 * heads * size, generator=draw).to(device, dtype) for _ in range(2))
    bias = torch.linspace(-1.0, 1.0, values.shape[1], device=device).requires_grad_()
    inputs = [values.requires_grad_(), bias]
    out, expected = gelu(values, bias), functional.gelu(values.float() + bias)
    found, wanted = torch.autograd.grad([out], inputs, [slope]), torch.autograd.grad([expected], inputs, [slope.float()])
    return _close([out, *found], [expected, *wanted])


def _check_attention(device: torch.device, dtype: torch.dtype, heads: int, size: int, draw: torch.Generator) -> bool:
    """Compare `attention` and its gradient without dropout; with it, both passes must have dropped the same weights."""
    if size not in SIZES:
        return True  # `varlen` gives such heads to flash attention
    lengths = [128, 65, 33, 32, 31, 2, 1]
    layout, tokens = Layout.of(np.array(lengths), device), sum(lengths)
    qkv = torch.randn(tokens, 3 * heads * size, generator=draw).to(device, dtype).requires_grad_()
    slope = torch.randn(tokens, heads * size, generator=draw).to(device, dtype)
    out = attention(qkv, layout, heads, SELDOM)
    parts = [part.float().view(-1, 3, heads, size).permute(1, 2, 0, 3) for part in torch.split(qkv, lengths)]
    states = [(part[0] @ part[1].transpose(1, 2) * size**-0.5).softmax(-1) @ part[2] for part in parts]
    expected = torch.cat([state.transpose(0, 1).flatten(1) for state in states])
    (found,), (wanted,) = (torch.autograd.grad([o], [qkv], [slope.to(o.dtype)]) for o in (out, expected))
    if not _close([out, found], [expected, wanted]):
        return False
    out = attention(qkv, layout, heads, 0.25)
    (found,) = torch.autograd.grad([out], [qkv], [slope])
    value, of_value = (part.float().view(tokens, 3, -1)[:, 2].double() for part in (qkv, found))
    forth, back = ((a.double() * b).sum() for a, b in ((slope, out.double()), (value, of_value)))
    spread = (slope.double() * out.double()).norm()
    return bool((forth - back).abs() < 0.02 * spread) and not _close([out], [expected], 0.05)


CHECKS = {"add_norm": _check_norm, "gelu": _check_gelu, "attention": _check_attention}
"""What compares each kernel with torch's own function."""


@cache
def working(device: torch.device, dtype: torch.dtype, heads: int, size: int) -> frozenset[str]:
    """Return the kernels that compile here and compute what torch's own functions do; say once of each other one why it does not.

    Args:
        device: a GPU.
        dtype: of the products, bfloat16 or float16.
        heads, size: of the attention to come.

    Returns:
        some of `add_norm`, `gelu` and `attention`; a kernel that fails takes none of the others with it.
    """
    found = set()
    for name, check in CHECKS.items():
        try:
            with torch.inference_mode(False), torch.random.fork_rng(devices=[]), torch.enable_grad():
                if not check(device, dtype, heads, size, torch.Generator().manual_seed(1)):
                    raise ArithmeticError("its result differs from torch's")
            found.add(name)
        except Exception as error:  # a compiler, a driver or a kernel can fail in any way, and training can do without
            why = " ".join(str(error).split())[:300]
            log.warning("the kernel %s cannot be used here; torch's slower function replaces it (%s)", name, why)
    return frozenset(found)
