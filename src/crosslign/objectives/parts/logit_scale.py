"""A trainable factor of the cosines, in the place of 1/τ (docs/protocols.md)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from crosslign.encoders.model import Model
from crosslign.objectives import PARTS
from crosslign.objectives.contract import Part
from crosslign.options import AboveZero


@PARTS.register(version=1)
class LogitScale(Part):
    """One number, trained as it is (not as a logarithm), as XTREME's dual encoders do.

    Args:
        initial: its value at the start.
    """

    scale: nn.Parameter

    def __init__(self, initial: AboveZero = 100.0) -> None:
        super().__init__()
        self.initial = float(initial)  # YAML says 100, and a whole number has no gradient

    def attach(self, model: Model, seed: int) -> None:
        """Make the parameter."""
        self.scale = nn.Parameter(torch.full((1,), self.initial, device=model.device))

    def forward(self, cosines: Tensor) -> Tensor:
        """Return the logits of cosines of any shape."""
        return cosines * self.scale
