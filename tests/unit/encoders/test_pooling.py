"""Pooling and layers against numbers worked out by hand and a loop."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crosslign.encoders.pooling import POOLINGS, pool, resolve_layer

STATES = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]])
MASK = torch.tensor([[True, True, True, False]])
SPECIAL = torch.tensor([[True, False, True, False]])
TYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [("cls", [1, 2]), ("cls_before_mlp", [1, 2]), ("mean", [3, 4]), ("mean_no_special", [3, 4]), ("max", [5, 6]), ("last", [5, 6])],
)
@TYPES
def test_golden_padding_never_enters(pooling, expected, dtype):
    assert pool(STATES.to(dtype), MASK, SPECIAL, pooling).tolist() == [expected]


@TYPES
def test_golden_two_means_differ(dtype):
    states = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 0.0]]], dtype=dtype)
    mask, special = torch.ones(1, 3, dtype=torch.bool), torch.tensor([[True, False, True]])
    assert pool(states, mask, special, "mean")[0].tolist() == pytest.approx([4.3333333333, 2], abs=1e-9 if dtype is torch.float64 else 1e-6)
    assert pool(states, mask, special, "mean_no_special")[0].tolist() == [3, 4]


def test_a_sentence_of_special_tokens_only_has_no_content_mean():
    assert pool(STATES, MASK, MASK, "mean_no_special").tolist() == [[0, 0]]


def test_unknown_pooling_is_refused():
    with pytest.raises(ValueError, match="cls_before_mlp"):
        pool(STATES, MASK, SPECIAL, "average")


@given(st.lists(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=6), min_size=1, max_size=5), st.integers(0, 4))
def test_pooling_equals_a_loop_whatever_the_padding(rows, extra):
    longest = max(map(len, rows)) + extra
    states = torch.full((len(rows), longest, 1), 1e6, dtype=torch.float64)
    mask = torch.zeros(len(rows), longest, dtype=torch.bool)
    for i, row in enumerate(rows):
        states[i, : len(row), 0] = torch.tensor(row, dtype=torch.float64)
        mask[i, : len(row)] = True
    none = torch.zeros_like(mask)
    expected = {
        "mean": [sum(r) / len(r) for r in rows],
        "max": [max(r) for r in rows],
        "cls": [r[0] for r in rows],
        "last": [r[-1] for r in rows],
    }
    for pooling, values in expected.items():
        assert pool(states, mask, none, pooling)[:, 0].tolist() == pytest.approx(values, abs=1e-9)


@pytest.mark.parametrize(
    ("layer", "blocks", "expected"),
    [
        (-1, 6, 6),
        (0, 2, 0),
        (8, 12, 8),
        (8, 6, 4),  # ceil(8 * 6 / 12)
        (8, 2, 2),
        (20, 12, 10),  # a layer of 24 blocks
        (8, 24, 8),
        (13, 6, 4),  # ceil(13 * 6 / 24)
        (4, 6, 4),  # a layer that the model has is that one, however small it is
        (2, 2, 2),
        (14, 16, 14),
    ],
)
def test_layer_on_a_smaller_model(layer, blocks, expected):
    assert resolve_layer(layer, blocks) == expected


def test_all_poolings_have_names():
    assert len(set(POOLINGS)) == 8


@pytest.mark.parametrize(
    ("pooling", "layer", "read"),
    [("mean", 8, 2), ("mean", 1, 1), ("cls", -1, 2), ("avg_first_last", -1, 1), ("avg_first_last", 0, 0), ("pooler", 1, 2)],
)
def test_the_layer_that_a_readout_takes_is_known(tiny_model, pooling, layer, read):
    assert tiny_model.layer_read(pooling, layer) == read
