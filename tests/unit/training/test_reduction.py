"""Sums of gradients over ranks: begun while the backward pass goes on, and in one order on all ranks."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from crosslign.training import reduction


@pytest.fixture
def sums(monkeypatch):
    """What a rank of two hands to the others, which have zeros."""
    given = []
    monkeypatch.setattr(reduction, "BUCKET_BYTES", 1)  # each parameter alone
    work = SimpleNamespace(wait=lambda: None)
    monkeypatch.setattr(reduction.distributed, "all_reduce", lambda tensor, *_, **how: given.append(tensor.clone()) or work)
    return given


def _stepped(model, open_for_last, sums, seen):
    own = reduction.Reduction(SimpleNamespace(num_processes=2, device="cpu"), model, {})
    model[0].weight.register_hook(lambda _: seen.append(len(sums)))
    for last in (False, True):
        loss = model(torch.ones(1, 2)).sum()
        if last and open_for_last:
            with own.last_pass():
                loss.backward()
        else:
            loss.backward()
    own.finish()


@pytest.mark.parametrize(("open_for_last", "begun"), [(True, [0, 3]), (False, [0, 0])])
def test_sums_begin_before_the_first_layers_gradients_are_there(sums, open_for_last, begun):
    model, seen = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)), []
    _stepped(model, open_for_last, sums, seen)
    assert seen == begun
    alone = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    alone.load_state_dict(model.state_dict())
    for _ in range(2):
        alone(torch.ones(1, 2)).sum().backward()
    order = list(alone.parameters())[::-1]
    assert [one.tolist() for one in sums[:4]] == [parameter.grad.reshape(-1).tolist() for parameter in order]
    assert [p.grad.tolist() for p in model.parameters()] == [p.grad.tolist() for p in alone.parameters()]


def test_ranks_begin_the_same_sums_whatever_their_shares_reach(sums):
    shapes = []
    for reached in (0, 1):
        model = nn.ModuleList([nn.Linear(2, 3), nn.Linear(2, 4)])
        own = reduction.Reduction(SimpleNamespace(num_processes=2, device="cpu"), model, {})
        sums.clear()
        with own.last_pass():
            model[reached](torch.ones(1, 2)).sum().backward()
        own.finish()
        shapes.append([tuple(one.shape) for one in sums])
        assert [p.grad is None for p in model.parameters()] == [reached == 1, reached == 1, reached == 0, reached == 0]
    assert shapes[0] == shapes[1]
