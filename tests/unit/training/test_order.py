"""Batch order: a permutation an epoch, from seed and epoch alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslign.training.draws import WINDOW, Order, derive, torch_generator


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 3), st.booleans())
def test_every_epoch_sees_each_row_once_and_any_step_can_be_had_first(rows, batch, epoch, grouped):
    lengths = np.arange(rows) % 7 if grouped else None
    order = Order("x", rows, batch, 42, lengths)
    first = epoch * order.steps_per_epoch
    batches = [order.at(first + i).tolist() for i in range(order.steps_per_epoch)]
    assert sorted(row for batch_rows in batches for row in batch_rows) == list(range(rows))
    assert all(len(b) == batch for b in batches[:-1])
    assert len(batches[-1]) == (rows % batch or batch)
    last = first + order.steps_per_epoch - 1
    assert Order("x", rows, batch, 42, lengths).at(last).tolist() == batches[-1]


def test_epochs_seeds_and_sets_have_orders_of_their_own():
    orders = [Order("x", 50, 50, 1).at(0), Order("x", 50, 50, 1).at(1), Order("x", 50, 50, 2).at(0), Order("y", 50, 50, 1).at(0)]
    assert len({tuple(o) for o in orders}) == 4


def test_grouping_puts_like_lengths_together():
    lengths = np.random.default_rng(0).integers(1, 100, 512)
    spread = [np.ptp(lengths[Order("x", 512, 16, 1, grouped).at(i)]) for grouped in (lengths, None) for i in range(32)]
    assert np.mean(spread[:32]) < 0.2 * np.mean(spread[32:])


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 9), st.integers(1, 90), st.integers(0, 2), st.booleans())
def test_batches_stay_within_the_token_budget(tokens, batch, budget, epoch, questions):
    lengths, groups = np.array(tokens), [f"q{i // 3}" for i in range(len(tokens))] if questions else None
    order = Order("x", len(tokens), batch, 42, lengths, groups, budget)
    first = epoch * order.steps_per_epoch
    batches = [order.at(first + i).tolist() for i in range(order.steps_per_epoch)]
    assert sorted(row for rows in batches for row in rows) == list(range(len(tokens)))
    unit = min(3, len(tokens)) if questions else 1
    for rows in batches:
        assert len(rows) <= max(batch, unit)
        assert len(rows) * lengths[rows].max() <= budget or len(rows) <= unit
    last = order.steps_per_epoch - 1
    assert Order("x", len(tokens), batch, 42, lengths, groups, budget).at(first + last).tolist() == batches[-1]


def test_a_token_budget_fills_batches_and_draws_each_epoch_anew():
    lengths = np.random.default_rng(0).integers(4, 12, 400)
    order = Order("x", 400, 64, 1, lengths, tokens=128)
    assert order.steps_per_epoch <= 1.1 * lengths.sum() / 128 + 8  # few tokens of the budgets stay free
    epochs = [[order.at(e * order.steps_per_epoch + i).tolist() for i in range(order.steps_per_epoch)] for e in range(2)]
    sizes = {len(rows) for rows in epochs[0]}
    assert 128 // 11 in sizes
    assert max(sizes) == 128 // 4
    assert epochs[0] != epochs[1]
    assert {frozenset(rows) for rows in epochs[0]} != {frozenset(rows) for rows in epochs[1]}


def test_a_batch_holds_as_many_rows_or_whole_questions_as_it_may():
    lengths, questions = np.arange(1, 25), [f"q{i // 3}" for i in range(24)]
    assert Order("x", 24, 8, 1, lengths, tokens=8 * 24).steps_per_epoch == 3
    assert Order("x", 24, 7, 1, groups=questions).steps_per_epoch == 4  # two questions of three rows
    assert Order("x", 24, 7, 1, lengths, questions, tokens=7 * 24).steps_per_epoch == 4


def test_questions_of_like_length_and_unequal_size_stay_within_the_bounds():
    questions = [f"q{i}" for i in range(12) for _ in range(4 if i % 2 else 1)]
    order = Order("x", 30, 4, 1, np.full(30, 5), questions, tokens=20)
    assert order.steps_per_epoch == 8  # six of one row in two batches, six of four rows
    assert max(len(order.at(step)) for step in range(5 * 8)) == 4


def test_lengths_are_sorted_within_windows_and_every_full_batch_moves():
    rows = 2 * WINDOW * 2
    batches = [Order("x", rows, 2, 1, np.arange(rows)).at(step) for step in range(rows // 2)]
    assert sorted(np.concatenate(batches)) == list(range(rows))
    assert 1 < np.mean([np.ptp(batch) for batch in batches]) < 10  # as near as half of the rows allow
    two = Order("x", 16, 8, 1, np.arange(16))
    assert {int(two.at(2 * epoch).max()) for epoch in range(8)} == {7, 15}


@pytest.mark.parametrize("tokens", [None, 128])
def test_batches_of_like_length_come_in_any_order(tokens):
    """A network that saw short sentences first and long ones last would be another one."""
    lengths = np.random.default_rng(0).integers(4, 40, 400)
    order = Order("x", 400, 10, 1, lengths, tokens=tokens)
    epochs = [[int(lengths[order.at(e * order.steps_per_epoch + i)].max()) for i in range(order.steps_per_epoch)] for e in range(2)]
    assert epochs[0] != epochs[1]
    for longest in epochs:
        rising = sum(a <= b for a, b in pairwise(longest)) / (len(longest) - 1)
        assert 0.25 < rising < 0.75


def test_derived_seeds_are_fixed_and_apart():
    assert derive(42, "order", "x", 0) == derive(42, "order", "x", 0)
    assert len({derive(42, "a", "b"), derive(42, "ab"), derive(42, "a", "b", 0), derive(43, "a", "b")}) == 4
    assert 0 <= derive(-1, "x") < 1 << 63
    assert torch_generator(1, "x").initial_seed() == derive(1, "x")


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 12), st.integers(0, 2), st.booleans())
def test_questions_stay_whole(codes, batch, epoch, by_length):
    groups = [f"question {code}" for code in codes]
    lengths = np.array([len(g) + n % 5 for n, g in enumerate(groups)]) if by_length else None
    order = Order("x", len(groups), batch, 42, lengths, groups)
    first = epoch * order.steps_per_epoch
    batches = [order.at(first + i).tolist() for i in range(order.steps_per_epoch)]
    assert sorted(row for rows in batches for row in rows) == list(range(len(groups)))
    largest = max(groups.count(g) for g in set(groups))
    for rows in batches:
        assert sorted(rows) == [row for row, group in enumerate(groups) if group in {groups[r] for r in rows}]
        assert len(rows) <= max(batch, largest)
