"""Dual momentum contrast: two sides, momentum keys, queues of negatives (docs/papers/moco_bert.md, docs/papers/emma_x.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Generator, Tensor

from crosslign.devices import numbers_on
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import MASKED, Batch, Input, Loss, Part, Shape, both_sides, mean_of, part_of, unit
from crosslign.objectives.parts.momentum_queue import MomentumQueue, QueueName
from crosslign.objectives.queue_scores import queue_logsumexp
from crosslign.options import AboveZero, Layer, Pooling


@OBJECTIVES.register(version=1)
class MomentumContrast:
    """MoCo-BERT: `L(x,y) = −log exp(h_x·k_y/τ) / ( exp(h_x·k_y/τ) + Σ_q exp(h_x·q/τ) )`, mean over the batch; L(x,y) + L(y,x).

    h are the encoder's vectors, k the momentum encoder's, q the queue of earlier keys of y's language; all L2-normalised, no
    gradient through k and q. The paper's equation 2 writes h for keys and queries alike. Keys are enqueued after the loss. An
    empty queue gives a loss of exactly 0. Source: MoCo-BERT, section 3, and the step order of the MoCo code.

    EMMA-X's phase 1 (its equation 2) is `in_batch_keys` and `own_side_keys` at τ = 0.04 (printed in the paper's appendix; its code
    has 0.05), with weight 0.5 for the mean over both sides.

    Inputs: `a`, `b` [B, d] with gradient; `a_key`, `b_key` [B, d] from the momentum members.

    Args:
        queue: name of a `momentum_queue` part.
        temperature: τ, above 0, by which cosines are divided.
        in_batch_keys: the batch's other keys of the positive's side are negatives too (MoCo's rule is no).
        own_side_keys: the batch's keys of the query's own side, its own key left out, are negatives too.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
    """

    shape: Shape = "pairs"

    def __init__(
        self,
        queue: QueueName,
        temperature: AboveZero = 0.04,
        in_batch_keys: bool = False,
        own_side_keys: bool = False,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
    ) -> None:
        self.queue, self.temperature, self.pooling, self.layer = queue, temperature, pooling, layer
        self.in_batch_keys, self.own_side_keys = in_batch_keys, own_side_keys

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return both sides as queries and as keys."""
        sides = both_sides(batch)
        return sides | {f"{name}_key": replace(item, keys=True) for name, item in sides.items()}

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the sum of both directions, and note the keys for the queue."""
        queue = part_of(parts, self.queue, MomentumQueue)
        sides = both_sides(batch)
        queries = {name: unit(vectors[name]) for name in sides}
        keys = {name: unit(vectors[f"{name}_key"].detach()) for name in sides}
        total, logged = queries["a"].new_zeros(()), {}
        for own, other in (("a", "b"), ("b", "a")):
            rings = queue.rings_of(sides[other].langs)
            losses, cosines = self._direction(queries[own], keys[own], keys[other], rings, queue)
            total = total + losses.mean()
            logged[f"loss_{own}{other}"], logged[f"positive_cosine_{own}{other}"] = mean_of(losses), mean_of(cosines)
        for name in sides:
            queue.stage(f"{name}_key", vectors[f"{name}_key"], sides[name].langs)
        return Loss(total, {**logged, "queue_filled": float(mean_of(torch.tensor(queue.held))) / queue.size})

    def _direction(
        self, queries: Tensor, own_keys: Tensor, keys: Tensor, rings: Mapping[int, Sequence[int]], queue: MomentumQueue
    ) -> tuple[Tensor, Tensor]:
        """Return the losses and the positives' cosines, both [B], of one side against the keys of the other."""
        cosines = (queries * keys).sum(1)
        positives = cosines / self.temperature
        earlier = torch.full_like(positives, MASKED)
        for ring, numbers in rings.items():
            rows = numbers_on(queries.device, numbers)
            earlier = earlier.index_put((rows,), queue_logsumexp(queries[rows], queue.keys(ring), self.temperature))
        scores = [positives.unsqueeze(1), earlier.unsqueeze(1)]
        own = torch.eye(len(queries), dtype=torch.bool, device=queries.device)
        for wanted, candidates in ((self.in_batch_keys, keys), (self.own_side_keys, own_keys)):
            if wanted:
                scores.append((queries @ candidates.T / self.temperature).masked_fill(own, MASKED))
        return torch.cat(scores, 1).logsumexp(1) - positives, cosines
