"""Sums of gradients over ranks: begun while the backward pass goes on, and in one order on all ranks."""

from types import SimpleNamespace

import numpy as np
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
    own.finish({}, alike=False)


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
        own.finish({}, alike=False)
        shapes.append([tuple(one.shape) for one in sums])
        assert [p.grad is None for p in model.parameters()] == [reached == 1, reached == 1, reached == 0, reached == 0]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("alike", [True, False])
def test_rows_of_a_table_are_summed_that_any_rank_read_and_only_unlike_ranks_ask_each_other(monkeypatch, alike):
    """The other rank read rows 2 and 4, and has a gradient of 10 there; where it alone read some, this one has none."""
    asked, table = [], nn.Embedding(6, 2, sparse=True)
    read = np.array([False, alike, True, False, True, False])

    def all_reduce(tensor, *_, **how):
        if not tensor.is_floating_point():
            asked.append(tensor.tolist())
            tensor.fill_(reduction.ROWS)
        else:
            tensor += torch.tensor([[10.0] if row != 1 else [0.0] for row in np.flatnonzero(read)])

    monkeypatch.setattr(reduction.distributed, "all_reduce", all_reduce)
    own = reduction.Reduction(SimpleNamespace(num_processes=2, device="cpu"), table, {})
    if alike:
        (table(torch.tensor([4, 1, 4])) * torch.tensor([[1.0], [2.0], [3.0]])).sum().backward()
    own.finish({table.weight: read}, alike)
    assert asked == ([] if alike else [[reduction.NONE]])
    assert table.weight.grad.is_sparse
    assert table.weight.grad.to_dense()[:, 0].tolist() == ([0, 2, 10, 0, 14, 0] if alike else [0, 0, 10, 0, 10, 0])
