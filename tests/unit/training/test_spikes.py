"""A loss that jumps names the examples of its batch."""

import logging

from crosslign.training.curve import Spikes


def steps(spikes, losses):
    return [spikes.add(step, loss, [f"pairs:{step}", f"pairs:{step}0"]) for step, loss in enumerate(losses, start=1)]


def test_a_jump_is_named_with_the_ids_of_its_examples(caplog):
    falling = [2.0 - 0.01 * n + 0.02 * (n % 3) for n in range(40)]
    with caplog.at_level(logging.INFO):
        found = steps(Spikes(), [*falling, 9.0, 1.6])
    assert [n for n, spike in enumerate(found, start=1) if spike] == [41]
    (kept,) = caplog.records
    assert kept.getMessage().startswith("step 41: loss 9.0000")
    assert kept.getMessage().endswith("its 2 examples: pairs:41 pairs:410")
    assert hasattr(kept, "only_in_file")


def test_noise_and_the_first_steps_are_no_spikes(caplog):
    assert not any(steps(Spikes(), [5.0 + (n * 7919 % 100) / 50 for n in range(200)]))
    assert not any(steps(Spikes(), [30.0, 1.0, 25.0, 0.1, 9.0]))
    assert not any(steps(Spikes(), [1.0] * 30 + [1.4]))  # even where nothing varies, half above the median is the least
    assert not caplog.text


def test_a_run_that_never_settles_does_not_flood_the_log(caplog):
    with caplog.at_level(logging.WARNING):
        found = steps(Spikes(), [1.0 if n % 4 else 50.0 for n in range(400)][1:])
    assert sum(found) > 20
    assert len(caplog.records) == 20
