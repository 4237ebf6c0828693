"""What a training asks of its encoder, counted from its batches: sentences, tokens and FLOPs (docs/training.md, Budget)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslign.encoders.model import Member
from crosslign.encoders.tokens import Ids
from crosslign.errors import InputError

WITH_GRADIENT = 3
"""Forward passes that a forward and a backward pass take together: the backward pass multiplies by weights and by activations."""


@dataclass(frozen=True)
class Cost:
    """What was encoded, on all ranks together.

    Attributes:
        sentences: sentences, or pairs that are read as one text.
        tokens: their tokens, special ones included and padding left out.
        tokens_with_gradient: those of them that were encoded with gradient.
        flops: of the encoder's products, `WITH_GRADIENT` times those of a forward pass where there was a gradient, once elsewhere.
    """

    sentences: int = 0
    tokens: int = 0
    tokens_with_gradient: int = 0
    flops: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Return both together."""
        with_gradient = self.tokens_with_gradient + other.tokens_with_gradient
        return Cost(self.sentences + other.sentences, self.tokens + other.tokens, with_gradient, self.flops + other.flops)


def cost_of(member: Member, ids: Sequence[Ids], blocks: int, gradient: bool) -> Cost:
    """Return the cost of encoding sentences.

    A sentence of n tokens takes 2·n·W for the products with weights and 4·n²·d·L for those of attention: W weights in the blocks that
    are read, L of these, d the length of the states. Gradient caching encodes with gradient twice, to save memory: it counts once.

    Args:
        member: the encoder.
        ids: token ids of each sentence.
        blocks: blocks of the encoder that are read.
        gradient: whether a backward pass follows.
    """
    lengths = np.fromiter((len(one) for one in ids), np.float64, len(ids))
    weights = member.block_weights * blocks / member.blocks
    flops = float((2 * lengths * weights + 4 * lengths**2 * member.dimension * blocks).sum())
    tokens = int(lengths.sum())
    return Cost(len(ids), tokens, tokens if gradient else 0, flops * (WITH_GRADIENT if gradient else 1))


def steps_within(budget: float, cost: Callable[[int], Cost], where: str) -> int:
    """Return how many steps of a training come nearest to a budget.

    Args:
        budget: FLOPs of the encoder.
        cost: of a step, from 0; batches are functions of seed and step, so it is known without encoding.
        where: the system, for messages.

    Raises:
        InputError: the first step alone takes more than twice the budget.
    """
    spent, steps = 0.0, 0
    while True:
        own = cost(steps).flops
        if spent + own > budget:
            break
        spent, steps = spent + own, steps + 1
    steps += spent + own - budget < budget - spent
    if steps == 0:
        why = f"a step takes {own:.3g} FLOPs, the budget is {budget:.3g}"
        raise InputError("the budget is too small for one step", where=f"{where}: train.budget", why=why, do="Raise it, or lower `batch`")
    return steps


def restored(state: Any, done: int, cost: Callable[[int], Cost]) -> Cost:
    """Return the cost of the steps before a checkpoint: as it holds it, else counted anew, where an earlier version wrote it."""
    return Cost(**state) if state else sum(map(cost, range(done)), Cost())
