"""Losses of sentence-transformers, computed on vectors that the trainer encoded."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from crosslign.config.borrowed import check_loss, inner_loss
from crosslign.errors import InputError


class Encoded(nn.Module):
    """What these losses take for a model: it gives the vectors that stand in its features.

    Args:
        width: length of the vectors.
        device: of the vectors.
    """

    def __init__(self, width: int, device: torch.device) -> None:
        super().__init__()
        self.width, self.device = width, device

    def get_embedding_dimension(self) -> int:
        """Return the length of the vectors."""
        return self.width

    def forward(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the vectors as the embedding of the sentences."""
        return {"sentence_embedding": features["vectors"]}


def borrowed_loss(name: str, options: Mapping[str, Any], width: int, device: torch.device) -> nn.Module:
    """Build a loss of sentence-transformers; a loss inside it is an option `loss`: that one's name, or its `loss` and `options`.

    Args:
        name: of its class, such as `CoSENTLoss`.
        options: its keyword arguments but for the model, checked against its signature.
        width: length of the vectors.
        device: of the vectors.

    Raises:
        InputError: no such loss or option, or a loss that has no place here; says why.
    """
    check_loss(name, options, f"loss {name}")
    return _built(name, options, Encoded(width, device))


def _built(name: str, options: Mapping[str, Any], model: Encoded) -> nn.Module:
    from sentence_transformers.sentence_transformer import losses

    kind, given = getattr(losses, name), dict(options)
    if "embedding_dimension" in inspect.signature(kind.__init__).parameters:
        given.setdefault("embedding_dimension", model.width)
    if "loss" in given:
        given["loss"] = _built(*inner_loss(given["loss"], f"loss {name}"), model)
    try:
        built: nn.Module = kind(model, **given)
    except (TypeError, ValueError) as error:
        raise InputError("an option is invalid", where=f"loss {name}", why=str(error)) from error
    return built
