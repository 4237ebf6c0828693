"""A loss of sentence-transformers that has weights of its own, such as `SoftmaxLoss`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from crosslign.objectives import PARTS
from crosslign.objectives.borrowed import borrowed_loss
from crosslign.objectives.contract import Part

if TYPE_CHECKING:
    from crosslign.encoders.model import Model


@PARTS.register(version=1)
class LossWeights(Part):
    """The loss, whose weights are drawn from the run's seed, trained with the encoder and kept in its checkpoints.

    Source: the documentation of sentence-transformers, Losses.

    Args:
        loss: name of its class.
        options: its keyword arguments, such as `num_labels`.
    """

    def __init__(self, loss: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.name, self.options = loss, options or {}
        self.built: nn.Module = nn.Identity()

    def attach(self, model: Model, seed: int) -> None:
        """Build the loss for the encoder's vectors."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.built = borrowed_loss(self.name, self.options, model.dimension, model.device).to(model.device)
