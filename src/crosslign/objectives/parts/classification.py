"""A classification head, of the terms that train it and those that align its posteriors (docs/papers/scl.md, docs/papers/moco_bert.md)."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from crosslign.encoders.model import Model
from crosslign.objectives import PARTS
from crosslign.objectives.contract import Part, unit, widened
from crosslign.options import Ge, Lt, Positive

Head = Literal["roberta", "mlp", "linear"]
Features = Literal["vector", "concat"]


@PARTS.register(version=1)
class Classification(Part):
    """From vectors to class logits.

    Heads: `roberta`: dropout, dense d→d, tanh, dropout, linear, the head of RoBERTa's sequence classifiers (SCL does not name
    its own); `mlp`: dense to `hidden`, ReLU, dropout, linear, that of MoCo-BERT's NLI term; `linear`: dropout, linear.
    Weights start from N(0, 0.02²), biases from 0.

    Args:
        labels: classes; 1 for the score of one choice among several.
        head: `roberta` (dense, tanh, linear), `mlp` (dense, ReLU, linear) or `linear`.
        features: `vector`: one vector a row (a cross-encoder's, or a single sentence's); `concat`: [u; v; |u − v|] of the
            vectors of two sentences.
        hidden: units of `mlp`.
        dropout: its probability.
        normalise: whether `concat` takes vectors of unit length.
    """

    layers: nn.Sequential

    def __init__(
        self,
        labels: Positive,
        head: Head = "roberta",
        features: Features = "vector",
        hidden: Positive = 256,
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.1,
        normalise: bool = True,
    ) -> None:
        super().__init__()
        self.labels, self.hidden, self.dropout, self.normalise = labels, hidden, dropout, normalise
        self.head, self.features = head, features

    def attach(self, model: Model, seed: int) -> None:
        """Build the layers for the model's vectors."""
        width = model.dimension * (3 if self.features == "concat" else 1)
        if self.head == "roberta":
            dense: list[nn.Module] = [nn.Dropout(self.dropout), nn.Linear(width, width), nn.Tanh(), nn.Dropout(self.dropout)]
            last = width
        elif self.head == "mlp":
            dense, last = [nn.Linear(width, self.hidden), nn.ReLU(), nn.Dropout(self.dropout)], self.hidden
        else:
            dense, last = [nn.Dropout(self.dropout)], width
        self.layers = nn.Sequential(*dense, nn.Linear(last, self.labels))
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for layer in self.layers:
                if isinstance(layer, nn.Linear):
                    layer.weight.normal_(0.0, 0.02, generator=generator)
                    layer.bias.zero_()
        self.layers.to(model.device)

    def combine(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the features [n, 3d], in float32 at least, of pairs of sentence vectors [n, d]."""
        u, v = (unit(a), unit(b)) if self.normalise else (widened(a), widened(b))
        return torch.cat([u, v, (u - v).abs()], 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return logits, float32 [n, labels], of features [n, d] or [n, 3d]."""
        return widened(self.layers(widened(features)))
