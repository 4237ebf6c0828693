"""Schedules and step counts against numbers worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslign.errors import InputError
from crosslign.training.draws import Order
from crosslign.training.optimiser import SCHEDULES, multiplier, steps_within, total_steps, warmup_of


@pytest.mark.parametrize(("step", "rate"), [(0, 0), (200, 2e-5), (400, 4e-5), (700, 2e-5), (1000, 0)])
def test_golden_cosine(step, rate):
    assert 4e-5 * multiplier("cosine", step, 1000, 400) == pytest.approx(rate, abs=1e-16)


@pytest.mark.parametrize(("schedule", "middle"), [("cosine", 0.55), ("linear", 0.55), ("constant", 1.0)])
def test_a_schedule_ends_at_its_final_share(schedule, middle):
    factors = [multiplier(schedule, step, 1000, 400, 0.1) for step in (0, 200, 400, 700, 1000)]
    assert factors == pytest.approx([0.0, 0.5, 1.0, middle, 1.0 if schedule == "constant" else 0.1])


def test_a_warm_up_of_all_steps_ends_at_the_final_share():
    assert [multiplier("linear", step, 4, 4, 0.1) for step in range(5)] == pytest.approx([0.0, 0.25, 0.5, 0.75, 0.1])


@pytest.mark.parametrize(("step", "rate"), [(0, 1e-5), (1, 9.99535747e-6), (1000, 5.35747447e-6), (2153, 4.64252553e-9), (2154, 0)])
def test_golden_linear(step, rate):
    assert 1e-5 * multiplier("linear", step, 2154) == pytest.approx(rate, rel=1e-8)


@pytest.mark.parametrize(
    ("rows", "batch", "epochs", "expected"),
    [
        (275601, 128, 1, 2154),
        (2239086, 64, 1, 34986),
        (1000000, 128, 1, 7813),
        (392702, 128, 1, 3068),
        (3 * 392702, 128, 1, 9204),
        (275601, 128, 2, 4308),
    ],
)
def test_golden_steps_per_epoch(rows, batch, epochs, expected):
    assert total_steps(Order("x", rows, batch, 1).steps_per_epoch, epochs, None) == expected


def test_steps_end_training_before_the_epochs_do():
    assert total_steps(10, 3, 12) == 12
    assert total_steps(10, 1, 12) == 10
    assert total_steps(10, None, 12) == 12
    assert total_steps(10, None, None) == 10
    assert total_steps(10, 0.25, None) == 3
    assert total_steps(50, 1.1, None) == 55  # in floating point 1.1 * 50 is a little more


@pytest.mark.parametrize(
    ("train", "steps", "expected"),
    [
        ({"warmup_share": 0.1}, 49089, 4909),
        ({"warmup_share": 0.1}, 30, 3),
        ({"warmup_share": 0.1}, 31, 4),
        ({"warmup_share": 0.07}, 100, 7),  # in floating point 0.07 * 100 is a little more
        ({"warmup_share": 0.0, "warmup_steps": 400}, 1000, 0),
        ({"warmup_steps": 400}, 1000, 400),
        ({}, 1000, 0),
    ],
)
def test_warm_up_in_steps_or_as_a_share_of_them(train, steps, expected):
    # 392,702 rows in batches of 24, three epochs: 49,089 steps; golden as a tenth of them
    assert warmup_of(train, steps) == expected


@given(st.sampled_from(SCHEDULES), st.integers(1, 500), st.integers(0, 500), st.data())
def test_multiplier_stays_in_bounds_and_never_rises_after_the_warm_up(schedule, steps, warmup, data):
    warmup = min(warmup, steps)
    step = data.draw(st.integers(0, steps - 1))
    now, then = multiplier(schedule, step, steps, warmup), multiplier(schedule, step + 1, steps, warmup)
    assert 0 <= now <= 1
    if step + 1 < warmup:
        assert then > now
    if step >= warmup:
        assert then <= now + 1e-12


def test_constant_and_unknown():
    assert multiplier("constant", 9, 10) == 1
    with pytest.raises(ValueError, match="cosine"):
        multiplier("polynomial", 1, 10)


def test_steps_come_as_near_as_they_can():
    def flops(step):
        return 10.0 + step  # together 10, 21, 33, 46 …

    assert [steps_within(most, flops, "S") for most in (6, 10, 14, 16, 21, 27.5, 33)] == [1, 1, 1, 2, 2, 3, 3]
    with pytest.raises(InputError, match=r"S: train\.budget: .* 10 FLOPs.* 4\b"):
        steps_within(4, flops, "S")
