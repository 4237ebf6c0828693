"""EMMA-X's encoder loss: ranking InfoNCE over the ranks that the classifier gives (docs/papers/emma_x.md, equation 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Generator, Tensor

from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import Batch, Input, Loss, Part, Shape, kept_logsumexp, part_of, widened
from crosslign.objectives.parts.momentum_queue import MomentumQueue, QueueName
from crosslign.objectives.parts.rank_scores import ScoresName
from crosslign.objectives.rank_classifier import ClassifierName, RankClassifier
from crosslign.objectives.ranking import Candidates, guard_rails, scores_of
from crosslign.options import AboveZero, Layer, Pooling, Share

Aggregate = Literal["sum", "mean"]
Over = Literal["all", "having"]


def rank_temperatures(ranks: int, lowest: float, highest: float) -> list[float]:
    """Return τ_r of the terms r = 1 … N − 1, evenly spaced; the lowest alone when N = 2."""
    if ranks == 2:
        return [lowest]
    return [lowest + (highest - lowest) * (r - 1) / (ranks - 2) for r in range(1, ranks)]


def rank_terms(
    cosines: Tensor, ranks: Tensor, keep: Tensor, temperatures: list[float], mean: bool = False, mean_over: str = "all"
) -> list[Tensor]:
    """Return the terms r = 1 … N − 1 of ranking InfoNCE, each a mean over anchors.

    Args:
        cosines: [B, M], with gradient.
        ranks: int64 [B, M], 1 … N.
        keep: bool [B, M]; other pairs take no part.
        temperatures: τ_r of each term.
        mean: average the probabilities inside the logarithm instead of summing them.
        mean_over: `all` anchors, of which one without an item of rank r contributes 0, or those `having` one.

    Returns:
        N − 1 scalars; a rank that no anchor has contributes 0.
    """
    terms = []
    for r, temperature in enumerate(temperatures, start=1):
        own, others, scores = keep & (ranks == r), keep & (ranks >= r), cosines / temperature
        has = own.any(1)
        losses = kept_logsumexp(scores, others) - kept_logsumexp(scores, own)
        losses = losses + own.sum(1).to(losses.dtype).log() if mean else losses
        summed = losses.masked_fill(~has, 0.0).sum()
        terms.append(summed / (len(cosines) if mean_over == "all" else has.sum().clamp(min=1)))
    return terms


@OBJECTIVES.register(version=3)
class RankInfoNCE:
    """`L = −Σ_{r=1}^{N−1} mean_i log [ Σ_{k: rank r} e^{cos(x_i,y_k)/τ_r} / Σ_{k: rank ≥ r} e^{cos(x_i,y_k)/τ_r} ]`.

    Candidates y are the keys in the queue and the batch's other keys; ranks are the most probable ones by the classifier,
    without gradient, rank 1 the most similar. The mean of a term is over all anchors, as the expectation of the paper and the
    released `loss.mean()` are; an anchor without an item of its rank contributes 0.

    Source: EMMA-X, equations 7 and 20; τ_N is never used. Differs from the released code in that ranks count from the most
    similar, an empty rank contributes 0 (there −log 1e-7, a constant), there is no masked-language-model loss, and numerators are sums
    inside the logarithm (there means, apart by log of the count, plus 1e-7).

    Inputs: `a` [B, d] with gradient; `a_key` [B, d] and `b_key` [≤ B, d] from the momentum members.

    Args:
        queue: name of a `momentum_queue` part.
        classifier: name of a `gaussian_mixture` or `rank_network` part.
        scores: name of a `rank_scores` part, which is updated with the classifier's ranks, if any.
        temperature_min: τ_1, of the most similar rank.
        temperature_max: τ_{N−1}, of the last rank but one.
        rank_loss_aggregate: sum (paper) or mean (released code) of the probabilities inside the logarithm.
        mean_over: a term's mean is over `all` anchors (paper, released code) or over those `having` an item of its rank.
        anchor_parallel: share of the batch with a parallel sentence of known rank 1 (0 in the paper, 1 in the released code).
        self_positive: the momentum view of the anchor itself has rank 1.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
    """

    shape: Shape = "pairs"

    def __init__(
        self,
        queue: QueueName,
        classifier: ClassifierName,
        scores: ScoresName | None = None,
        temperature_min: AboveZero = 0.05,
        temperature_max: AboveZero = 0.10,
        rank_loss_aggregate: Aggregate = "sum",
        mean_over: Over = "all",
        anchor_parallel: Share = 0.1,
        self_positive: bool = False,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
    ) -> None:
        self.queue, self.classifier, self.scores = queue, classifier, scores
        self.temperatures = (temperature_min, temperature_max)
        self.mean = rank_loss_aggregate == "mean"
        self.mean_over = mean_over
        self.pooling, self.layer = pooling, layer
        self.candidates = Candidates(queue, anchor_parallel, self_positive)

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return anchors and keys."""
        return self.candidates.inputs(batch, draw)

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the sum of the terms; log the guard rails, and note the step's pairs for the queue and the scores."""
        pool = self.candidates.pool(vectors, batch, part_of(parts, self.queue, MomentumQueue))
        classifier = part_of(parts, self.classifier, RankClassifier)  # type: ignore[type-abstract]
        scores = scores_of(parts, self.scores, classifier)
        with torch.no_grad():
            posteriors = classifier.log_posteriors(pool.anchors.detach(), pool.candidates)
            ranks = (posteriors.argmax(-1) + 1).masked_fill(pool.forced, 1)
        temperatures = rank_temperatures(classifier.ranks, *self.temperatures)
        terms = rank_terms(pool.cosines, ranks, pool.keep, temperatures, self.mean, self.mean_over)
        logged: dict[str, float | Tensor] = {f"loss_rank_{r}": term.detach() for r, term in enumerate(terms, start=1)}
        logged |= guard_rails(pool, posteriors, scores)
        if scores:
            scores.update(pool.kept(pool.cosines), pool.kept(ranks))
        return Loss((torch.stack(terms).sum() + 0 * pool.anchors.sum()).to(widened(vectors["a"]).dtype), logged)
