"""Batches that do not fit: what is said, and micro-batches of half the size where that is allowed."""

from __future__ import annotations

import json

import pytest
import torch
import trial

from crosslign.encoders.model import Member
from crosslign.errors import ResourceError
from crosslign.training.memory import TooLargeError, bounded_memory, does_not_fit, halved, largest_that_fits

LIMITS = [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError()]


@pytest.fixture
def room(monkeypatch):
    """Give the encoder memory for so many sentences at a time, from a step on; return the sizes it was asked for."""

    def limit(sentences, error=LIMITS[0]):
        real, asked = Member.forward, []

        def forward(self, features, *rest):
            asked.append(len(features["input_ids"]))
            if asked[-1] > sentences:
                raise error
            return real(self, features, *rest)

        monkeypatch.setattr(Member, "forward", forward)
        return asked

    return limit


def _losses(folder):
    return [json.loads(line)["loss"] for line in (folder / "curve.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("error", LIMITS, ids=["cuda", "cpu", "python"])
def test_the_largest_micro_batch_that_fits_is_named(train, room, error):
    room(10, error)
    with pytest.raises(ResourceError, match=r"step 1: .*micro_batch .*\{'pairs': 5\}.*auto_micro_batch"):
        train(trial.recipe())


def test_what_never_fits_says_so(train, room):
    room(0)
    with pytest.raises(ResourceError, match=r"step 1: .*\{'pairs': 8\}; .*max_length"):
        train(trial.recipe())


def test_smaller_micro_batches_go_on_and_change_no_loss(train, tiny_encoder, monkeypatch, room):
    from crosslign.encoders.model import Model

    model, again = (Model.load({"main": tiny_encoder / "main"}) for _ in range(2))
    for module in [*model.modules(), *again.modules()]:
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    _, plain = train(trial.recipe(), "plain", model=model)
    asked = room(5)
    summary, folder = train(trial.recipe(train={"auto_micro_batch": True}), model=again)
    assert summary["micro_batches"] == {"pairs": 2}
    assert max(asked) == 16
    assert _losses(folder) == pytest.approx(_losses(plain), rel=1e-4)


def test_the_smaller_size_is_kept_over_a_stop(train, monkeypatch, stopped_before, room):
    """What the next start has more memory for must change no bytes: micro-batches have dropout of their own."""
    recipe = trial.recipe(train={"auto_micro_batch": True})
    with monkeypatch.context() as little:
        little.setattr(Member, "forward", Member.forward)
        room(5)
        _, whole = train(recipe, "whole")
        with stopped_before(4):
            train(recipe)
    summary, folder = train(recipe)
    assert summary["micro_batches"] == {"pairs": 2}
    assert trial.weights(folder) == trial.weights(whole)


def test_a_run_goes_back_to_its_checkpoint_and_resumes_with_the_smaller_size(train, room, monkeypatch, tmp_path):
    """Memory runs out at step 4, after parts have changed: the queue's moving average and the commits must not count twice."""
    parts = {"momentum": {"kind": "trial_momentum"}}
    terms = [{"objective": "trial_keyed", "examples": "pairs", "batch": 8}]
    recipe = trial.recipe(parts=parts, terms=terms, train={"steps": 8, "checkpoint_every": 2, "auto_micro_batch": True})
    from crosslign.training.encoding import Encoding

    real, spent = Encoding.backward, []

    def backward(self, *last):
        spent.append(len(self._graphs))
        if len(spent) == 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        real(self, *last)

    with monkeypatch.context() as patch:
        patch.setattr(Encoding, "backward", backward)
        summary, folder = train(recipe, "split")
    assert summary["micro_batches"] == {"pairs": 4}
    assert [line["step"] for line in map(json.loads, (folder / "curve.jsonl").read_text().splitlines())] == list(range(1, 9))
    expected = _by_hand(train, monkeypatch, recipe)
    assert trial.weights(folder) == trial.weights(expected)


def _by_hand(train, monkeypatch, recipe):
    """Train with the half size from step 3 on, by setting it there."""
    from crosslign.training.step import Stepper

    real = Stepper.run

    def run(self, step, *rest):
        if step == 2:
            self.micro_batches = {"pairs": 4}
        return real(self, step, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Stepper, "run", run)
        return train(recipe, "by_hand")[1]


def test_sizes_are_halved_and_searched():
    assert halved({"a": 7, "b": 1}) == {"a": 3, "b": 1}
    assert halved({"a": 1}) is None
    for limit in (1, 2, 3, 37, 100, 511):
        found = largest_that_fits({"x": 512}, lambda sizes, limit=limit: sizes["x"] <= limit)
        assert limit * 7 / 8 - 1 <= found["x"] <= limit
    assert largest_that_fits({"x": 512}, lambda sizes: False) is None
    assert largest_that_fits({"x": 64, "y": 2}, lambda sizes: sizes["x"] <= 8) == {"x": 8, "y": 1}
    assert largest_that_fits({"x": 1}, lambda sizes: True) is None  # 1 is what has just failed
    assert largest_that_fits({"x": 2}, lambda sizes: True) == {"x": 1}
    assert largest_that_fits({"x": 3}, lambda sizes: True) == {"x": 2}


def test_a_declared_budget_makes_allocations_fail():
    from crosslign.training.memory import own_status

    taken = own_status("VmRSS") >> 20
    with bounded_memory(taken + 200):
        assert len(torch.ones(100 << 18)) == 100 << 18
        with pytest.raises(RuntimeError, match="can't"):
            torch.ones(400 << 18)
    assert len(torch.ones(400 << 18)) == 400 << 18
    with pytest.raises(ResourceError, match=r"memory_mb: .* 1 "), bounded_memory(1):
        pass


def test_what_several_processes_are_told_is_a_guess():
    error = TooLargeError(3, {"pairs": 8}, "CUDA out of memory")
    assert "{'pairs': 4}, the largest tested size that fits" in str(does_not_fit(error, {"pairs": 4}))
    assert "{'pairs': 4} or less" in str(does_not_fit(error, {"pairs": 4}, tried=False))


def test_where_the_system_tells_no_sizes_there_is_no_bound(monkeypatch):
    monkeypatch.setattr("crosslign.training.memory.own_status", lambda field: 0)
    with bounded_memory(1):
        assert len(torch.ones(64 << 18)) == 64 << 18


@pytest.fixture
def small_loss(monkeypatch, room):
    """Give the loss no memory at all; return the sizes that the encoder was asked for."""

    def loss(self, vectors, batch, parts):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(trial.Paired, "loss", loss)
    return room(99)


@pytest.mark.parametrize("auto", [True, False])
@pytest.mark.parametrize("micro_batch", [2, 8])
def test_a_loss_that_does_not_fit_is_told_from_what_is_encoded(train, small_loss, auto, micro_batch):
    """Two micro-batches hold no graphs: smaller ones make no room. One of the whole batch holds its own: half of it may."""
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8, "micro_batch": micro_batch}]
    expected = r"step 1: .*loss.* 8 "
    if micro_batch == 8 and not auto:
        expected = r"step 1: .*\{'pairs': 8\}; .*micro_batch .*\{'pairs': 7\}"
    with pytest.raises(ResourceError, match=expected):
        train(trial.recipe(terms=terms, train={"auto_micro_batch": auto}))
    assert small_loss.count(16) == (micro_batch == 8)
    if auto:
        assert min(small_loss) == {2: 4, 8: 8}[micro_batch]  # nothing is tried that cannot help


def test_a_copy_whose_keys_do_not_fit_bounds_what_is_named(train, monkeypatch):
    """The momentum copy has room for three sentences at a time, the encoder for all."""
    real = trial.Momentum.key_member

    def key_member(self, name):
        module = real(self, name)

        def forward(features, *rest):
            if len(features["input_ids"]) > 3:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return Member.forward(module, features, *rest)

        module.forward = forward
        return module

    monkeypatch.setattr(trial.Momentum, "key_member", key_member)
    parts = {"momentum": {"kind": "trial_momentum"}}
    with pytest.raises(ResourceError, match=r"step 1: .*\{'pairs': 8\}; .*micro_batch .*\{'pairs': 3\}"):
        train(trial.recipe(parts=parts, terms=[{"objective": "trial_keyed", "examples": "pairs", "batch": 8}]))
