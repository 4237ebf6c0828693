"""Whose random draws a training puts back."""

import torch

from crosslign.training.accelerator import own_device


def test_a_rank_puts_back_the_draws_of_its_own_gpu_alone(two_gpus, monkeypatch):
    """Looking at those of a device that another rank has would take memory there."""
    looked, state = [], torch.cuda.get_rng_state
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: looked.append(device) or state(device))
    for rank in ("0", "1"):
        monkeypatch.setenv("LOCAL_RANK", rank)
        with torch.random.fork_rng(devices=own_device()):
            pass
    assert looked == [0, 1]
