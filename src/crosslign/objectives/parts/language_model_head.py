"""The head of masked language modelling: from a token's state to the vocabulary (docs/papers/emma_x.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from crosslign.encoders.model import Model
from crosslign.errors import InputError
from crosslign.objectives import PARTS
from crosslign.objectives.contract import Part, widened

TOKENS = 512
"""Tokens whose scores are there at a time: 0.5 GB of a vocabulary of 250,000; the backward pass computes them again."""


@PARTS.register(version=1)
class LanguageModelHead(Part):
    """XLM-R's head: logits = E LayerNorm(gelu(W h + b)) + c, where E are the encoder's own word embeddings.

    E gets no gradient through the head, only as the encoder's input (there through both: the tables are tied). W and the norm start from
    N(0, 0.02²), 0 and 1, or with `start_from: encoder` from the released checkpoint's `lm_head`. Source: Conneau et al. 2020.
    """

    training_only = True
    published: ClassVar[Mapping[str, str]] = {
        "dense.weight": "lm_head.dense.weight",
        "dense.bias": "lm_head.dense.bias",
        "norm.weight": "lm_head.layer_norm.weight",
        "norm.bias": "lm_head.layer_norm.bias",
        "bias": "lm_head.bias",
    }
    dense: nn.Linear
    norm: nn.LayerNorm

    def attach(self, model: Model, seed: int) -> None:
        """Build the layers for the model's states and vocabulary.

        Raises:
            InputError: the model has several members, and so several vocabularies.
        """
        if len(model.members) > 1:
            raise InputError(
                "a language model's head needs exactly one encoder", where="language_model_head", why=f"members: {sorted(model.members)}"
            )
        self._model = (model,)  # a tuple, so that the model is not a sub-module of the part
        self.dense = nn.Linear(model.dimension, model.dimension, device=model.device)
        eps = float(getattr(self._backbone().config, "layer_norm_eps", 1e-5))
        self.norm = nn.LayerNorm(model.dimension, eps=eps, device=model.device)
        self.bias = nn.Parameter(torch.zeros(len(self._table()), device=model.device))
        drawn = torch.empty(self.dense.weight.shape).normal_(0.0, 0.02, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            self.dense.weight.copy_(drawn)
            self.dense.bias.zero_()

    def _backbone(self) -> Any:
        return next(iter(self._model[0].members.values())).backbone

    def _table(self) -> Tensor:
        return self._backbone().get_input_embeddings().weight.detach()  # type: ignore[no-any-return]

    def _block(self, states: Tensor, ids: Tensor) -> Tensor:
        inner = self.norm(functional.gelu(self.dense(states)))
        return functional.cross_entropy(functional.linear(inner, self._table(), self.bias), ids, reduction="none")

    def losses(self, states: Tensor, ids: Tensor) -> Tensor:
        """Return the cross-entropy of each token, float32 [m].

        Args:
            states: float [m, d], of masked tokens.
            ids: int64 [m], what they were.
        """
        pieces = zip(torch.split(widened(states), TOKENS), torch.split(ids, TOKENS), strict=True)
        found: list[Tensor] = [checkpoint(self._block, own, wanted, use_reentrant=False) for own, wanted in pieces]
        return torch.cat(found)
