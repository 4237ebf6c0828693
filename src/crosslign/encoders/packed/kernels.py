"""Triton kernels of the packed pass in training on a GPU; `fused` calls them.

A block of a transformer is bound by memory between its products, so each kernel reads what it needs once: dropout, residual, layer
norm and the copy in half precision are one, GELU and its bias one, attention of a short sentence one. Dropout is never stored: its
draws are functions of a seed and an element's place, so the backward pass makes them again. Gradients of vectors (biases, norms) are
summed by a fixed number of programs and then over these, always in one order.
"""

# Triton compiles these functions by the types that it is given, and reads annotations as its own.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

ROUNDS = tl.constexpr(7)
"""Of Philox: the least that passes every test of BigCrush (Salmon et al., 2011)."""
LONGEST = tl.constexpr(128)
"""Tokens of the longest sentence that the attention takes; so many elements a row has in the numbering of its draws."""


@triton.jit
def _kept(seed, first, least, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr):
    """Return which elements are kept, bool [ROWS, COLUMNS], of rows of WIDTH elements, from row number `first` on.

    A draw of Philox has four numbers of 32 bits, for four neighbours in a row; those that are not below `least` are kept.
    """
    quarter: tl.constexpr = COLUMNS // 4
    rows = (first + tl.arange(0, ROWS)).to(tl.int32)
    places = rows[:, None] * (WIDTH // 4) + tl.arange(0, quarter)[None, :]
    a, b, c, d = tl.randint4x(seed, places, ROUNDS)
    least = tl.cast(least, tl.uint32)
    even = tl.join((a >= least).to(tl.int8), (b >= least).to(tl.int8))
    odd = tl.join((c >= least).to(tl.int8), (d >= least).to(tl.int8))
    return tl.reshape(tl.join(even, odd), (ROWS, COLUMNS)) != 0


@triton.jit
def _weights(query, key, real, scale):
    """Return the softmax of the scores, float32 [BLOCK, BLOCK], padding's columns zero, and by what each row is still to be multiplied."""
    scores = tl.where(real[None, :], tl.dot(query, tl.trans(key)), float("-inf"))
    scale = scale * 1.4426950408889634  # of powers of two
    weights = tl.exp2(scores * scale - (tl.max(scores, 1) * scale)[:, None])
    return weights, 1.0 / tl.sum(weights, 1)


@triton.jit
def _place(starts, first, HEADS: tl.constexpr, BLOCK: tl.constexpr):
    """Return which head and sentence this program does: the head, the sentence's first token, which rows are not padding."""
    head, sentence = tl.program_id(0) % HEADS, first + tl.program_id(0) // HEADS
    start = tl.load(starts + sentence).to(tl.int64)
    return head, start, tl.arange(0, BLOCK) < tl.load(starts + sentence + 1) - start


@triton.jit
def _elements(start, head, HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """Return where a head's elements lie [BLOCK, SIZE]: its queries in rows of query, key and value, its states in rows of states."""
    rows, columns = start + tl.arange(0, BLOCK)[:, None], head * SIZE + tl.arange(0, SIZE)[None, :]
    return rows * (3 * HEADS * SIZE) + columns, rows * (HEADS * SIZE) + columns


@triton.jit
def _inputs(at, real, WIDTH: tl.constexpr):
    """Return a head's queries, keys and values [BLOCK, SIZE]; padding's rows are zero."""
    query = tl.load(at, mask=real[:, None], other=0.0)
    key = tl.load(at + WIDTH, mask=real[:, None], other=0.0)
    return query, key, tl.load(at + 2 * WIDTH, mask=real[:, None], other=0.0)


@triton.jit(do_not_specialize=["first", "seed", "least"])
def attention_forward(
    qkv, out, starts, first, seed, least, factor, scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """One head of one sentence: softmax(query keyᵀ scale), dropout, times value."""
    head, start, real = _place(starts, first, HEADS, BLOCK)
    at, to = _elements(start, head, HEADS, SIZE, BLOCK)
    query, key, value = _inputs(qkv + at, real, HEADS * SIZE)
    weights, each = _weights(query, key, real, scale)
    if DROP:
        weights = tl.where(_kept(seed + head, start, least, BLOCK, BLOCK, LONGEST), weights, 0.0)
    states = tl.dot(weights.to(value.dtype), value) * (each * factor)[:, None]
    tl.store(out + to, states.to(out.dtype.element_ty), mask=real[:, None])


@triton.jit(do_not_specialize=["first", "seed", "least"])
def attention_backward(
    qkv, slope, out, starts, first, seed, least, factor, scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """The gradient of `attention_forward` with respect to query, key and value, from `slope`, that of its result."""
    head, start, real = _place(starts, first, HEADS, BLOCK)
    at, to = _elements(start, head, HEADS, SIZE, BLOCK)
    query, key, value = _inputs(qkv + at, real, HEADS * SIZE)
    given = tl.load(slope + to, mask=real[:, None], other=0.0)
    weights, each = _weights(query, key, real, scale)
    weights = weights * each[:, None]
    slopes, dropped = tl.dot(given, tl.trans(value)), weights
    if DROP:
        kept = _kept(seed + head, start, least, BLOCK, BLOCK, LONGEST)
        slopes, dropped = tl.where(kept, slopes, 0.0), tl.where(kept, weights, 0.0)
    of_value = tl.dot(tl.trans(dropped.to(given.dtype)), given) * factor
    tl.store(out + at + 2 * HEADS * SIZE, of_value.to(out.dtype.element_ty), mask=real[:, None])
    scores = weights * (slopes - tl.sum(weights * slopes, 1)[:, None]) * (scale * factor)
    scores = scores.to(query.dtype)
    tl.store(out + at, tl.dot(scores, key).to(out.dtype.element_ty), mask=real[:, None])
    tl.store(out + at + HEADS * SIZE, tl.dot(tl.trans(scores), query).to(out.dtype.element_ty), mask=real[:, None])


@triton.jit(do_not_specialize=["seed", "least"])
def norm_forward(
    branch, bias, states, gain, shift, out, half, means, scales, width, epsilon, seed, least, factor,
    BLOCK: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """One token: the layer norm of states + dropout(branch + bias), in float32 and in half precision."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    real = columns < width
    at = row * width + columns
    added = tl.load(branch + at, mask=real, other=0.0).to(tl.float32) + tl.load(bias + columns, mask=real, other=0.0)
    if DROP:
        added = tl.where(tl.reshape(_kept(seed, row, least, 1, BLOCK, BLOCK), (BLOCK,)), added * factor, 0.0)
    summed = tl.load(states + at, mask=real, other=0.0) + added
    mean = tl.sum(summed, 0) / width
    centred = tl.where(real, summed - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / width + epsilon)
    values = centred * scale * tl.load(gain + columns, mask=real, other=0.0) + tl.load(shift + columns, mask=real, other=0.0)
    tl.store(out + at, values, mask=real)
    tl.store(half + at, values.to(half.dtype.element_ty), mask=real)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)


@triton.jit(do_not_specialize=["tokens", "seed", "least"])
def norm_backward(
    slope, half_slope, branch, bias, states, gain, means, scales, of_branch, of_states, sums, tokens, width, seed, least, factor,
    BLOCK: tl.constexpr, DROP: tl.constexpr, BOTH: tl.constexpr,
):  # fmt: skip
    """Tokens in turn, one to each program: the gradients of `norm_forward`; of gain, shift, bias summed in `sums` [programs, 3, width]."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.arange(0, BLOCK)
    real = columns < width
    offset, gains = tl.load(bias + columns, mask=real, other=0.0), tl.load(gain + columns, mask=real, other=0.0)
    of_gain, of_shift = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    of_bias = tl.zeros((BLOCK,), tl.float32)
    wide = tl.cast(width, tl.int64)  # rows times width may not fit into 32 bits
    for row in range(program, tokens, programs):
        at = row * wide + columns
        added = tl.load(branch + at, mask=real, other=0.0).to(tl.float32) + offset
        own = tl.load(slope + at, mask=real, other=0.0)
        if BOTH:
            own += tl.load(half_slope + at, mask=real, other=0.0).to(tl.float32)
        if DROP:
            kept = tl.where(tl.reshape(_kept(seed, row, least, 1, BLOCK, BLOCK), (BLOCK,)), factor, 0.0)
            added = added * kept
        scale = tl.load(scales + row)
        normed = (tl.load(states + at, mask=real, other=0.0) + added - tl.load(means + row)) * scale
        normed = tl.where(real, normed, 0.0)
        of_gain += own * normed
        of_shift += own
        own = own * gains
        own = (own - tl.sum(own, 0) / width - normed * (tl.sum(own * normed, 0) / width)) * scale
        tl.store(of_states + at, own, mask=real)
        if DROP:
            own = own * kept
        of_bias += own
        tl.store(of_branch + at, own.to(of_branch.dtype.element_ty), mask=real)
    to = sums + program * 3 * width + columns
    tl.store(to, of_gain, mask=real)
    tl.store(to + width, of_shift, mask=real)
    tl.store(to + 2 * width, of_bias, mask=real)


@triton.jit
def _normal(values):
    """Return the normal distribution's function and exp(-values² / 2), to 3e-7 (Abramowitz and Stegun, 7.1.26): half of erf's steps."""
    density = tl.exp2(values * values * -0.7213475204444817)
    near = 1.0 / (1.0 + 0.2316418883 * tl.abs(values))
    tail = near * (0.127414796 + near * (-0.142248368 + near * (0.7107068705 + near * (-0.7265760135 + near * 0.5307027145)))) * density
    return tl.where(values < 0, tail, 1.0 - tail), density


@triton.jit(do_not_specialize=["tokens"])
def gelu_forward(values, bias, out, tokens, width, BLOCK: tl.constexpr):
    """A span of columns, tokens in turn: GELU (exact, by erf) of values + bias."""
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = columns < width
    offset = tl.load(bias + columns, mask=real, other=0.0)
    wide = tl.cast(width, tl.int64)
    for row in range(tl.program_id(0), tokens, tl.num_programs(0)):
        at = row * wide + columns
        inner = tl.load(values + at, mask=real, other=0.0).to(tl.float32) + offset
        tl.store(out + at, (inner * _normal(inner)[0]).to(out.dtype.element_ty), mask=real)


@triton.jit(do_not_specialize=["tokens"])
def gelu_backward(slope, values, bias, out, sums, tokens, width, BLOCK: tl.constexpr):
    """A span of columns, tokens in turn: the gradient of `gelu_forward`; that of the bias summed in `sums` [programs, width]."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = columns < width
    offset = tl.load(bias + columns, mask=real, other=0.0)
    total = tl.zeros((BLOCK,), tl.float32)
    wide = tl.cast(width, tl.int64)  # rows times width may not fit into 32 bits
    for row in range(program, tokens, programs):
        at = row * wide + columns
        inner = tl.load(values + at, mask=real, other=0.0).to(tl.float32) + offset
        share, density = _normal(inner)
        own = tl.load(slope + at, mask=real, other=0.0).to(tl.float32) * (share + inner * density * 0.3989422804014327)
        tl.store(out + at, own.to(out.dtype.element_ty), mask=real)
        total += own
    tl.store(sums + program * width + columns, total, mask=real)
