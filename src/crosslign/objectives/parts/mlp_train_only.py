"""A projection that is there in training and gone in evaluation (docs/papers/msimcse.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from crosslign.encoders.model import Model
from crosslign.objectives import PARTS
from crosslign.objectives.contract import Part, widened


@PARTS.register(version=1)
class TrainOnlyMLP(Part):
    """SimCSE's head: tanh(W h + b) from d to d numbers, between the encoder and the loss.

    Encoders are saved and read out without it, so an embedding is what the encoder itself gives (`mlp_only_train` of SimCSE,
    which mSimCSE passes in all its published scripts). Weights start from N(0, 0.02²), the bias from 0, as BERT's do; or with
    `start_from: encoder` from what SimCSE's code saved of it beside the encoder.
    """

    published: ClassVar[Mapping[str, str]] = {"dense.weight": "mlp.dense.weight", "dense.bias": "mlp.dense.bias"}
    dense: nn.Linear

    def attach(self, model: Model, seed: int) -> None:
        """Build the layer for the model's vectors."""
        self.dense = nn.Linear(model.dimension, model.dimension, device=model.device)
        drawn = torch.empty(self.dense.weight.shape).normal_(0.0, 0.02, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            self.dense.weight.copy_(drawn)
            self.dense.bias.zero_()

    def forward(self, vectors: Tensor) -> Tensor:
        """Return float [n, d] from [n, d]."""
        return torch.tanh(self.dense(widened(vectors)))
