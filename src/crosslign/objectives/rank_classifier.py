"""What a part must offer to tell the semantic rank of two sentences (docs/papers/emma_x.md)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

from torch import Tensor

from crosslign.objectives.contract import Part
from crosslign.options import Schema

ClassifierName = Annotated[str, Schema(part=["gaussian_mixture", "rank_network"])]


class RankClassifier(Part):
    """P(rank | x, y); rank 1 is most similar, rank N is irrelevant (the released code counts the other way round).

    Args:
        ranks: N ≥ 2.
        frozen: never trained: phase 2 with a fixed classifier.
    """

    def __init__(self, ranks: int, frozen: bool) -> None:
        super().__init__()
        self.ranks, self.frozen = ranks, frozen

    @abstractmethod
    def log_posteriors(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log P(rank | x_i, y_k), [n, m, N], in float32 at least, of all pairs of x [n, d] and y [m, d]."""

    @abstractmethod
    def paired_log_posteriors(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log P(rank | x_i, y_i), [n, N], in float32 at least, of x and y [n, d]."""
