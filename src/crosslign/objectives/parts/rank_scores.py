"""The cosine that each semantic rank stands for, s_r, kept up by moving averages (docs/papers/emma_x.md)."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor

from crosslign.encoders.model import Model
from crosslign.objectives import PARTS
from crosslign.objectives.contract import Part
from crosslign.options import AtLeastTwo, Schema, Share

ScoresName = Annotated[str, Schema(part=["rank_scores"])]
Start = Literal["measured", "linear", "printed"]


@PARTS.register(version=1)
class RankScores(Part):
    """s_r: the encoder's side of the dual supervision, `c*_M = argmin_r |cos(x, y) − s_r|`; ties go to the smaller rank (eq. 10).

    Phase 2 updates, for every rank that has pairs, `s_r ← ε s_r + (1 − ε) · mean cosine of its pairs` (eq. 11, whose text says
    encoder where its formula has the mixture's ranks; the formula counts). Phase 1 measures: with `s_init: measured`, s_r is
    the mean cosine of the pairs labelled r, real, interpolated and random, over about the last 1/(1 − ε) steps; phase 2 takes
    it over with `start_from: base`. The paper starts from r/N, which gives rank 1, the most similar, the smallest score.

    Args:
        ranks: N, the number of semantic ranks.
        s_init: `measured`, from a linear start; `linear`: (N − r + 1)/N; `printed`: r/N, inverted.
        epsilon: ε, the share of the old value in the moving average, from the released code.

    Attributes:
        scores: s, float32 [N].
    """

    scores: Tensor
    sums: Tensor
    counts: Tensor

    def __init__(self, ranks: AtLeastTwo = 4, s_init: Start = "measured", epsilon: Share = 0.999) -> None:
        super().__init__()
        self.ranks, self.s_init, self.epsilon = ranks, s_init, epsilon
        self._updates: tuple[Tensor, Tensor] | None = None
        self._measures: tuple[Tensor, Tensor] | None = None

    def attach(self, model: Model, seed: int) -> None:
        """Set the starting scores."""
        steps = torch.arange(1, self.ranks + 1, dtype=torch.float32)
        start = steps if self.s_init == "printed" else self.ranks - steps + 1
        self.register_buffer("scores", (start / self.ranks).to(model.device))
        self.register_buffer("sums", torch.zeros(self.ranks, device=model.device))
        self.register_buffer("counts", torch.zeros(self.ranks, device=model.device))

    def nearest(self, cosines: Tensor) -> Tensor:
        """Return the rank 1 … N, int64, of each cosine; of any shape."""
        return (cosines.detach().unsqueeze(-1) - self.scores.to(cosines.dtype)).abs().argmin(-1) + 1

    def _by_rank(self, cosines: Tensor, ranks: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of the cosines and the number of pairs of each rank, float32 [N]."""
        own = [ranks == r for r in range(1, self.ranks + 1)]
        sums = torch.stack([(cosines.detach() * pairs).sum() for pairs in own])
        return sums.float(), torch.stack([pairs.sum() for pairs in own]).float()

    def update(self, cosines: Tensor, ranks: Tensor) -> None:
        """Note pairs of phase 2 for `commit`: their cosines, and their ranks 1 … N by the classifier."""
        self._updates = self._by_rank(cosines, ranks)

    def measure(self, cosines: Tensor, ranks: Tensor) -> None:
        """Note labelled pairs of phase 1 for `commit`."""
        self._measures = self._by_rank(cosines, ranks)

    @torch.no_grad()
    def commit(self, vectors: dict[str, Tensor]) -> None:
        """Move the scores; a rank without pairs keeps its own."""
        if self._measures:
            self.sums.mul_(self.epsilon).add_(self._measures[0])
            self.counts.mul_(self.epsilon).add_(self._measures[1])
            if self.s_init == "measured":
                self.scores.copy_(torch.where(self.counts > 0, self.sums / self.counts.clamp(min=1e-12), self.scores))
        if self._updates:
            sums, counts = self._updates
            moved = self.epsilon * self.scores + (1 - self.epsilon) * sums / counts.clamp(min=1)
            self.scores.copy_(torch.where(counts > 0, moved, self.scores))
        self._updates = self._measures = None
