"""Updates of the rows that were used: the bytes of AdamW over the whole table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from crosslign.training.optimiser import Optimiser, RowGradient, RowUpdates


class Table(nn.Module):
    """A table of embeddings and a matrix."""

    def __init__(self, rows):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.dense = nn.Embedding(rows, 8), nn.Linear(8, 3)

    def loss(self, ids, sparse):
        states = nn.functional.embedding(ids, self.words.weight, sparse=sparse)
        return self.dense(states).square().sum() * 3


def _train(sparse, rows=400, clip=1.0, decay=0.0, steps=12, stop=None, scaler=None):
    recipe = {"train": {"learning_rate": 0.01, "schedule": "linear", "clip": clip, "weight_decay": decay}, "parts": {}}
    model = Table(rows)
    optimiser = Optimiser(recipe, model, {}, steps)
    norms = []
    for step in range(steps):
        ids = torch.randint(0, 60, (30,), generator=torch.Generator().manual_seed(step))
        for half in ids.chunk(2):  # as gradient caching does
            loss = model.loss(half, sparse)
            (scaler.scale(loss) if scaler else loss).backward()
        norms.append(float(optimiser.step(step, scaler)))
        if step == stop:
            state = {name: tensor.clone() for name, tensor in optimiser.state().items()}
            optimiser = Optimiser(recipe, model, {}, steps)
            optimiser.load(state)
    return model, optimiser, norms


@pytest.mark.parametrize(("rows", "decay"), [(400, 0.0), (100, 0.0), (400, 0.1)])
@pytest.mark.parametrize("clip", [1.0, None])
def test_equal_to_the_whole_table(rows, decay, clip):
    (dense, optimiser, norms), (rowwise, other, found) = (_train(sparse, rows, clip, decay) for sparse in (False, True))
    assert found == pytest.approx(norms, rel=1e-5)
    for a, b in zip(dense.parameters(), rowwise.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)
    assert optimiser.state().keys() == other.state().keys()
    unused = 60 if not decay else rows
    assert torch.equal(rowwise.words.weight[unused:], Table(rows).words.weight[unused:])


def test_without_clipping_the_bytes_are_those_of_adamw():
    """Rows whose gradient no two sentences share: nothing is summed in another order."""
    options = {"clip": None, "betas": (0.8, 0.95), "epsilon": 1e-3}
    recipe = {"train": {"learning_rate": 0.01, "schedule": "constant", **options}, "parts": {}}
    tables = []
    for sparse in (False, True):
        model = Table(400)
        optimiser = Optimiser(recipe, model, {}, 5)
        for step in range(5):
            model.loss(torch.arange(step, step + 9), sparse).backward()
            optimiser.step(step)
        tables.append(model.words.weight.detach())
    assert torch.equal(*tables)


def test_a_loaded_state_goes_on_to_the_same_bytes():
    whole, stopped = _train(True)[0], _train(True, stop=6)[0]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), stopped.parameters(), strict=True))


def test_a_loaded_state_takes_the_place_of_another():
    recipe = {"train": {"learning_rate": 0.01, "schedule": "constant", "clip": None}, "parts": {}}
    models = [Table(400), Table(400)]
    optimisers = [Optimiser(recipe, model, {}, 5) for model in models]
    for model, optimiser, used in zip(models, optimisers, (50, 5), strict=True):
        model.loss(torch.arange(used), True).backward()
        optimiser.step(0)
    models[1].load_state_dict(models[0].state_dict())
    optimisers[1].load({name: tensor.clone() for name, tensor in optimisers[0].state().items()})
    for model, optimiser in zip(models, optimisers, strict=True):
        model.loss(torch.arange(5), True).backward()
        optimiser.step(1)
    assert torch.equal(models[0].words.weight, models[1].words.weight)  # rows 5 to 49 go on by their moments
    optimisers[1].load({})
    assert optimisers[1].state() == {}


def test_a_gradient_scaler_updates_the_rows_too():
    plain, scaled = (_train(True, scaler=scaler)[0] for scaler in (None, torch.amp.GradScaler("cpu")))
    assert not torch.equal(scaled.words.weight, Table(400).words.weight)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), scaled.parameters(), strict=True))


def test_an_update_stays_on_its_device():
    """By tensors that have a device, a shape and no values; which rows were used is not known of them."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        table = nn.Parameter(torch.empty(50, 8, device="cuda"))
        adamw = torch.optim.AdamW([table], lr=0.1, fused=True)
        places, used = torch.arange(5, device="cuda"), torch.arange(12, device="cuda")
        rows = RowGradient(table, adamw.param_groups[0], places, torch.empty(5, 8, device="cuda"), used)
        RowUpdates(adamw).step(rows, torch.zeros((), device="cuda"))
        assert {name: value.device.type for name, value in adamw.state[table].items()} == dict.fromkeys(
            ("step", "exp_avg", "exp_avg_sq"), "cuda"
        )


def test_rows_that_the_host_knows_are_those_that_a_gradient_has():
    """And row 0, which fills a batch on a GPU: it has no gradient, and stays as it is."""
    models, optimisers = [Table(400), Table(400)], []
    recipe = {"train": {"learning_rate": 0.01, "schedule": "constant", "clip": 1.0}, "parts": {}}
    for model, told in zip(models, (False, True), strict=True):
        optimisers.append(Optimiser(recipe, model, {}, 6))
        for step in range(6):
            ids = torch.randint(1, 60, (30,), generator=torch.Generator().manual_seed(step))
            for half in ids.chunk(2):
                model.loss(half, True).backward()
            read = np.zeros(400, np.bool_)
            read[ids] = read[0] = True
            optimisers[-1].step(step, read={model.words.weight: read} if told else None)
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)
    assert torch.equal(models[1].words.weight[0], Table(400).words.weight[0])
    assert not torch.equal(models[1].words.weight[1:60], Table(400).words.weight[1:60])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_loss_that_is_not_finite_leaves_weights_and_moments_as_they_are(sparse):
    """AdamW itself leaves such an update out, and does not count it."""
    model = Table(400)
    recipe = {"train": {"learning_rate": 0.01, "schedule": "constant", "clip": 1.0}, "parts": {}}
    optimiser, kept = Optimiser(recipe, model, {}, 3), []
    for loss in (1.0, torch.inf):
        model.loss(torch.arange(9), sparse).backward()
        optimiser.step(0, loss=torch.tensor(loss))
        kept.append([one.detach().clone() for one in (*model.parameters(), *optimiser.state().values())])
    assert not torch.equal(kept[0][0], Table(400).words.weight)
    assert all(torch.equal(a, b) for a, b in zip(*kept, strict=True))
