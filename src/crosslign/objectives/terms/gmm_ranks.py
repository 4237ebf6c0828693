"""EMMA-X's classifier loss: labelled pairs in phase 1, the encoder's ranks in phase 2 (docs/papers/emma_x.md, equations 4 and 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import torch
from torch import Generator, Tensor

from crosslign.devices import sent
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import Batch, Input, Loss, Part, Shape, both_sides, mean_of, part_of, unit, widened
from crosslign.objectives.parts.momentum_queue import MomentumQueue, QueueName
from crosslign.objectives.parts.rank_scores import RankScores, ScoresName
from crosslign.objectives.rank_classifier import ClassifierName, RankClassifier
from crosslign.objectives.ranking import Candidates, scores_of
from crosslign.options import Layer, Natural, Pooling, Share

Labels = Literal["interpolation", "encoder"]
Binning = Literal["ceil", "equal_width"]


def interpolation_ranks(shares: Tensor, ranks: int, binning: str) -> Tensor:
    """Return the rank 1 … N, int64, of a vector that lies the share λ of the way from a translation to a random sentence.

    `ceil` is the paper's `⌈1 + (N − 1)λ⌉` (equation 3), in float64 and less 1e-12 before rounding, so that exact multiples
    stay below; rank 1 then has probability 0. `equal_width` is `⌊Nλ⌋ + 1`.
    """
    wide = shares.double()
    if binning == "ceil":
        return (1 + (ranks - 1) * wide - 1e-12).ceil().long().clamp(1, ranks)
    return ((ranks * wide).floor().long() + 1).clamp(1, ranks)


def smoothed_nll(log_posteriors: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return −log P(label), of log-posteriors [..., N] and ranks 1 … N [...], the share `smoothing` spread over all ranks."""
    own = log_posteriors.gather(-1, (labels - 1).unsqueeze(-1)).squeeze(-1)
    return -(1 - smoothing) * own - smoothing * log_posteriors.mean(-1)


@OBJECTIVES.register(
    version=1,
    rules={
        "if": {"required": ["labels"], "properties": {"labels": {"const": "encoder"}}},
        "then": {"required": ["queue", "scores"]},
    },
)
class GMMRanks:
    """Trains the classifier of semantic ranks; no gradient reaches the encoder.

    - labels `interpolation` (phase 1, equation 4): for each pair (x, y), with y′ another row's y:
      `−log P(1 | x, y) − log P(N | x, y′) − Σ_ỹ log P(r | x, ỹ)`, ỹ = (1 − λ) γ(y) + λ γ(y′) with λ ~ U(0, 1); mean over the
      pairs. The ranks of a `rank_scores` part are measured.
    - labels `encoder` (phase 2, equation 6): the mean of −log P(c*_M) over all anchors and candidates, c*_M the nearest s_r.

    Source: EMMA-X, sections 3.2 and 3.3. Differs from the released code in that interpolation runs between y and y′ (there
    between the anchor itself and any key), label smoothing is off (there 0.3), and binning is the paper's.

    Inputs: `a` and `b_key`, or `b`, [B, d] (interpolation); `a`, `a_key`, `b_key` (encoder), as `rank_infonce` names them.

    Args:
        classifier: name of a `gaussian_mixture` or `rank_network` part.
        labels: `interpolation` (phase 1) or `encoder` (phase 2).
        scores: name of a `rank_scores` part; needed for `encoder`.
        queue: name of a `momentum_queue` part; needed for `encoder`. With `interpolation`, whether y are momentum keys, as
            phase 2 compares with, or, without one, the encoder's vectors.
        interpolations: number of ỹ per pair.
        binning: how λ becomes a rank: `ceil`, the paper's ⌈1 + (N − 1)λ⌉, or `equal_width`, ⌊Nλ⌋ + 1.
        normalise_interpolated: scale ỹ to unit length (the paper does not).
        label_smoothing: share of the label that is spread over all ranks.
        anchor_parallel: as in `rank_infonce`.
        self_positive: as in `rank_infonce`.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
    """

    shape: Shape = "pairs"

    def __init__(
        self,
        classifier: ClassifierName,
        labels: Labels = "interpolation",
        scores: ScoresName | None = None,
        queue: QueueName | None = None,
        interpolations: Natural = 4,
        binning: Binning = "ceil",
        normalise_interpolated: bool = False,
        label_smoothing: Share = 0.0,
        anchor_parallel: Share = 0.1,
        self_positive: bool = False,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
    ) -> None:
        self.classifier, self.scores, self.queue, self.pooling, self.layer = classifier, scores, queue, pooling, layer
        self.labels, self.binning = labels, binning
        self.interpolations, self.label_smoothing = interpolations, label_smoothing
        self.normalise_interpolated = normalise_interpolated
        self.candidates = Candidates(queue or "", anchor_parallel, self_positive)

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return what is compared: both sides, or anchors and keys."""
        if self.labels == "encoder":
            return self.candidates.inputs(batch, draw)
        sides = both_sides(batch)
        return {"a": sides["a"], "b_key": replace(sides["b"], keys=True)} if self.queue else sides

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the classifier's negative log-likelihood."""
        classifier = part_of(parts, self.classifier, RankClassifier)  # type: ignore[type-abstract]
        scores = scores_of(parts, self.scores, classifier)
        if self.labels == "encoder" and scores:
            return self._by_encoder(vectors, batch, classifier, scores, part_of(parts, self.queue or "", MomentumQueue))
        x = unit(vectors["a"].detach())
        y = unit(vectors["b_key" if self.queue else "b"].detach())
        others, labels = self._virtual(y, classifier.ranks)
        repeated = x.repeat(len(others) // len(x), 1)
        losses = smoothed_nll(classifier.paired_log_posteriors(repeated, others), labels, self.label_smoothing)
        if scores:
            scores.measure((repeated * unit(others)).sum(1), labels)
        return Loss(losses.sum() / len(x), {"accuracy": self._accuracy(classifier, repeated, others, labels)})

    def _virtual(self, y: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
        """Return the right-hand vectors, the pairs' own, random and interpolated ones below each other, and their ranks."""
        if len(y) == 1:
            return y, torch.ones(1, dtype=torch.int64, device=y.device)
        shift = int(torch.randint(1, len(y), ()))
        outlier = y.roll(shift, 0)
        shares = torch.rand(self.interpolations * len(y), dtype=torch.float64)
        weights = sent(shares.to(y.dtype), y.device).unsqueeze(1)
        times = (self.interpolations, 1)
        between = (1 - weights) * y.repeat(times) + weights * outlier.repeat(times)
        between = unit(between) if self.normalise_interpolated else between
        real = torch.ones(len(y), dtype=torch.int64, device=y.device)
        labels = torch.cat([real, ranks * real, sent(interpolation_ranks(shares, ranks, self.binning), y.device)])
        return torch.cat([y, outlier, between]), labels

    @torch.no_grad()
    def _accuracy(self, classifier: RankClassifier, x: Tensor, y: Tensor, labels: Tensor) -> Tensor:
        return mean_of(classifier.paired_log_posteriors(x, y).argmax(1) + 1 == labels)

    def _by_encoder(
        self, vectors: Mapping[str, Tensor], batch: Batch, classifier: RankClassifier, scores: RankScores, queue: MomentumQueue
    ) -> Loss:
        detached = {name: vector.detach() for name, vector in vectors.items()}
        pool = self.candidates.pool(detached, batch, queue)
        labels = scores.nearest(pool.cosines).masked_fill(pool.forced, 1)
        posteriors = classifier.log_posteriors(pool.anchors, pool.candidates)
        losses = pool.kept(smoothed_nll(posteriors, labels, self.label_smoothing))
        mean = (losses.sum() / max(1, len(losses))).to(widened(vectors["a"]).dtype)
        return Loss(mean, {"accuracy": mean_of(pool.kept(posteriors.argmax(-1) + 1 == labels))})
