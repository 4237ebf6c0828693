"""The classifier that EMMA-X's table 6 compares its mixture with: a small feed-forward network (docs/papers/emma_x.md)."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from crosslign.encoders.model import Model
from crosslign.objectives import PARTS
from crosslign.objectives.rank_classifier import RankClassifier
from crosslign.options import AtLeastTwo, Positive

HELD: Final = 1 << 24
"""Numbers of the hidden layer that are held at a time."""


@PARTS.register(version=1)
class RankNetwork(RankClassifier):
    """`softmax(W₂ relu(W₁ [γ(x); γ(y)] + b₁) + b₂)`.

    The paper does not describe its network; the released code has only a linear layer on [γ(x); γ(y)], commented out. Layers
    start as torch's do (uniform, from the fan-in). W₁ is applied to each half by itself, and the pairs by blocks of anchors.

    Args:
        ranks: N, the number of semantic ranks.
        frozen: never trained.
        hidden: units of the hidden layer; None: d, the length of the vectors.
    """

    first: nn.Linear
    last: nn.Linear

    def __init__(self, ranks: AtLeastTwo = 4, frozen: bool = False, hidden: Positive | None = None) -> None:
        super().__init__(ranks, frozen)
        self.hidden = hidden

    def attach(self, model: Model, seed: int) -> None:
        """Make the layers for the model's vectors."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            hidden = self.hidden or model.dimension
            self.first = nn.Linear(2 * model.dimension, hidden)
            self.last = nn.Linear(hidden, self.ranks)
        self.to(model.device).requires_grad_(not self.frozen)

    def _halves(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        weight = self.first.weight
        left, right = weight[:, : x.shape[1]], weight[:, x.shape[1] :]
        return x.to(weight.dtype) @ left.T, y.to(weight.dtype) @ right.T + self.first.bias

    def _scores(self, left: Tensor, right: Tensor) -> Tensor:
        hidden = (left.unsqueeze(1) + right.unsqueeze(0)).relu()
        return self.last(hidden).log_softmax(-1)  # type: ignore[no-any-return]

    def log_posteriors(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log P(rank | x_i, y_k), [n, m, N]."""
        left, right = self._halves(x, y)
        size = max(1, HELD // max(1, right.numel()))
        if len(left) <= size:
            return self._scores(left, right)
        blocks = torch.split(left, size)
        return torch.cat([checkpoint(self._scores, block, right, use_reentrant=False) for block in blocks])

    def paired_log_posteriors(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log P(rank | x_i, y_i), [n, N]."""
        left, right = self._halves(x, y)
        return self.last((left + right).relu()).log_softmax(-1)  # type: ignore[no-any-return]
