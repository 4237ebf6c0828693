"""What trainings encode is counted as torch counts it, and a training with a budget ends there."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import trial
from torch.utils.flop_counter import FlopCounterMode

from crosslign.encoders.model import Model
from crosslign.errors import InputError
from crosslign.training.cost import Cost, cost_of, steps_within

HEAD = {"head": {"kind": "trial_head"}}
KEYED = [
    {"objective": "trial_paired", "examples": "pairs", "batch": 8, "micro_batch": 3},
    {"objective": "trial_keyed", "examples": "pairs", "batch": 8},
]
MOMENTUM = {"momentum": {"kind": "trial_momentum"}}


def budget(flops, **more):
    """Return a recipe with a budget in place of steps."""
    recipe = trial.recipe(**more)
    del recipe["train"]["steps"]
    recipe["train"]["budget"] = flops
    return recipe


@pytest.mark.parametrize(("pooling", "layer"), [("mean", -1), ("mean", 1), ("cls", -1)])
def test_flops_of_a_sentence_are_those_that_torch_counts(tiny_encoder, pooling, layer):
    """Torch counts the products of the whole pass; blocks above an inner layer, and the pooler, are no part of the vector."""
    member = Model.load({"main": tiny_encoder / "main"}).eval().member("main")
    member.backbone.pooler = None
    member.backbone.set_attn_implementation("eager")  # torch does not count the products inside its kernel of attention
    blocks = member.blocks_read(pooling, layer)
    member.backbone.encoder.layer = member.backbone.encoder.layer[:blocks]
    for length in (3, 11):
        ids = torch.arange(5, 5 + length).unsqueeze(0)
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            member.backbone(input_ids=ids)
        member.blocks = blocks  # those that are left
        assert cost_of(member, [np.arange(length)], blocks, gradient=False).flops == counter.get_total_flops()
        assert cost_of(member, [np.arange(length)], blocks, gradient=True).flops == 3 * counter.get_total_flops()


def test_tokens_with_gradient_count_three_times_and_keys_once(train, tiny_model, sentence_pairs):
    """Three inputs with gradient and one without, each of 8 of 20 rows, 20 rows an epoch: counted by hand for one epoch."""
    summary, _ = train(trial.recipe(terms=KEYED, parts=MOMENTUM, train={"steps": 3, "max_length": 64}))
    member = tiny_model.member("main")
    lengths = [[len(ids) for ids in member.tokenise(list(texts), None, 64).ids] for texts in zip(*sentence_pairs, strict=True)]
    a, b = map(sum, lengths)
    encoded = summary["encoded"]
    assert (encoded["sentences"], encoded["tokens"], encoded["tokens_with_gradient"]) == (80, 2 * a + 2 * b, 2 * a + b)
    flops = [sum(cost_of(member, [np.arange(n)], member.blocks, gradient).flops for n in side) for side, gradient in
             ((lengths[0], True), (lengths[1], True), (lengths[0], True), (lengths[1], False))]  # fmt: skip
    assert encoded["flops"] == pytest.approx(sum(flops))


def test_training_ends_at_the_step_nearest_to_its_budget_and_the_schedule_with_it(train):
    plain, _ = train(trial.recipe(train={"steps": 9}), "plain")
    whole = plain["encoded"]["flops"]
    summary, folder = train(budget(whole * 1.01), "budget")
    assert (summary["steps"], summary["encoded"]) == (9, plain["encoded"])
    assert trial.weights(folder) == trial.weights(folder.parent / "plain")  # nothing but the length's name differs
    fewer, folder = train(budget(whole * 0.6), "less")
    lines = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    assert abs(fewer["encoded"]["flops"] / (whole * 0.6) - 1) < 0.5 / len(lines) * 1.5
    assert len(lines) == fewer["steps"] < 9


def test_a_stopped_training_counts_on_where_it_was(train, stopped_before):
    recipe = trial.recipe(train={"steps": 7, "checkpoint_every": 3})
    whole, _ = train(recipe, "whole")
    with stopped_before(4):
        train(recipe, "again")
    resumed, _ = train(recipe, "again")
    assert resumed["encoded"] == whole["encoded"]


def test_steps_come_as_near_as_they_can():
    def cost(step):
        return Cost(flops=10.0 + step)  # 10, 21, 33, 46 …

    assert [steps_within(flops, cost, "S") for flops in (6, 10, 14, 16, 21, 27.5, 33)] == [1, 1, 1, 2, 2, 3, 3]
    with pytest.raises(InputError, match=r"S: train\.budget: the budget is too small for one step; a step takes 10 FLOPs, the budget is 4"):
        steps_within(4, cost, "S")
