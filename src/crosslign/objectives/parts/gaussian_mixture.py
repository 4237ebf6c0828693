"""EMMA-X's classifier: a mixture of diagonal Gaussians over the difference of two sentence vectors (docs/papers/emma_x.md)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log, pi
from typing import Annotated, Final, Literal

import numpy as np
import torch
from torch import Tensor, nn

from crosslign.encoders.model import Model
from crosslign.errors import InputError
from crosslign.objectives import PARTS
from crosslign.objectives.contract import wide_type, widened
from crosslign.objectives.rank_classifier import RankClassifier
from crosslign.options import AboveZero, AtLeastTwo, Ge, Lt, MinLen

GmmInit = Literal["cosine", "random"]
TARGET_COSINES: Final = (0.9, 0.6, 0.35, 0.1)
"""Cosines that the ranks stand for at the start, unless others are given."""


def falling(targets: Sequence[float]) -> list[float]:
    """Return target cosines as they are.

    Raises:
        InputError: they do not fall, or are not in [-1, 1): a cosine of 1 has no variance.
    """
    if not all(-1 <= t < 1 for t in targets) or any(a <= b for a, b in pairwise(targets)):
        raise InputError("target_cosines must decrease and be below 1", where="gaussian_mixture", why=f"found {list(targets)}")
    return list(targets)


@PARTS.register(version=1)
class GaussianMixture(RankClassifier):
    """`P(r | δ) ∝ π_r N(δ; μ_r, diag σ_r²)` with δ = γ(x) − γ(y), trainable π, μ, σ (equation 5).

    `log N_r = −½ [ d·log 2π + Σ_k log σ_rk² + Σ_k (δ_k − μ_rk)²/σ_rk² ]`. The paper prints π in equation 5 and again in 19,
    and |diag σ| where σ is once a deviation and once a variance: π counts once here, and σ is the deviation. σ² is about 2/d:
    densities are computed in float64 on a CPU, and in float32 on a GPU, where float64 may be 64 times slower.

    Start `cosine`: μ = 0, equal π, σ_r² = 2(1 − t_r)/d with t = `target_cosines`, so that for unit vectors the most likely
    rank depends on the cosine alone (boundaries 0.815, 0.495, 0.239). Start `random` is the released code's: μ and log σ² from
    N(0, 1), some 30 standard deviations away from real differences in 1024 dimensions.

    Args:
        ranks: N, the number of semantic ranks.
        gmm_init: start from `target_cosines` (`cosine`), or like the released code (`random`).
        target_cosines: t, decreasing and below 1; interpolated if their number is not N.
        tempered: divide the log-likelihood by d, so that posteriors are not almost one-hot.
        squared_prior: count π twice, as the paper's equations 5 and 19 together print.
        variances: bounds of σ², held at each step; null for none.
        frozen: never trained.

    Attributes:
        means, log_variances: [N, d]; `prior_logits` [N].
    """

    means: nn.Parameter
    log_variances: nn.Parameter
    prior_logits: nn.Parameter

    def __init__(
        self,
        ranks: AtLeastTwo = 4,
        gmm_init: GmmInit = "cosine",
        target_cosines: Annotated[Sequence[Annotated[float, Ge(-1), Lt(1)]], MinLen(2)] = TARGET_COSINES,
        tempered: bool = False,
        squared_prior: bool = False,
        variances: tuple[AboveZero, AboveZero] | None = (1e-6, 1.0),
        frozen: bool = False,
    ) -> None:
        super().__init__(ranks, frozen)
        self.gmm_init = gmm_init
        self.target_cosines = falling(target_cosines)
        self.tempered, self.squared_prior, self.variances = tempered, squared_prior, variances

    def attach(self, model: Model, seed: int) -> None:
        """Make the parameters for the model's vectors."""
        shape = (self.ranks, model.dimension)
        if self.gmm_init == "cosine":
            at = np.linspace(0.0, 1.0, self.ranks)
            targets = torch.from_numpy(np.interp(at, np.linspace(0.0, 1.0, len(self.target_cosines)), self.target_cosines))
            means, spread = torch.zeros(shape), (2 * (1 - targets) / model.dimension).log().float().unsqueeze(1).expand(shape)
        else:
            generator = torch.Generator().manual_seed(seed)
            means, spread = torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)
        for name, value in (("means", means), ("log_variances", spread), ("prior_logits", torch.zeros(self.ranks))):
            setattr(self, name, nn.Parameter(value.clone().to(model.device), requires_grad=not self.frozen))
        self.before_keys()

    @torch.no_grad()
    def before_keys(self) -> None:
        """Hold the variances within their bounds."""
        if self.variances:
            self.log_variances.clamp_(log(self.variances[0]), log(self.variances[1]))

    def log_posteriors(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log P(rank | x_i, y_k), [n, m, N].

        The square is multiplied out into matrix products, so that no difference of all pairs is ever held.
        """
        wide = wide_type(x)
        a, b = x.to(wide), y.to(wide)
        means, precisions = self.means.to(wide), (-self.log_variances.to(wide)).exp()
        distances = []
        for mean, precision in zip(means, precisions, strict=True):
            weighted, shifted = a * precision, b + mean
            left = (weighted * a).sum(1).unsqueeze(1)
            right = (shifted.square() @ precision).unsqueeze(0)
            distances.append(left + right - 2 * weighted @ shifted.T)
        return self._posteriors(torch.stack(distances, -1)).to(widened(x).dtype)

    def paired_log_posteriors(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log P(rank | x_i, y_i), [n, N]."""
        wide = wide_type(x)
        offsets = (x.to(wide) - y.to(wide)).unsqueeze(1) - self.means.to(wide)
        return self._posteriors((offsets.square() * (-self.log_variances.to(wide)).exp()).sum(-1)).to(widened(x).dtype)

    def log_densities(self, distances: Tensor) -> Tensor:
        """Return log N_r from Σ_k (δ_k − μ_rk)²/σ_rk², both [..., N]."""
        spread = self.log_variances.to(distances.dtype)
        return -0.5 * (spread.shape[1] * log(2 * pi) + spread.sum(1) + distances)

    def _posteriors(self, distances: Tensor) -> Tensor:
        likelihood = self.log_densities(distances) / (self.means.shape[1] if self.tempered else 1)
        prior = self.prior_logits.to(distances.dtype).log_softmax(0) * (2 if self.squared_prior else 1)
        return (prior + likelihood).log_softmax(-1)
