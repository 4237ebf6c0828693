"""Losses of sentence-transformers, computed on vectors that the trainer encoded."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from crosslign.config.borrowed import WIDTH, check_loss, inner_loss
from crosslign.errors import InputError


class Encoded(nn.Module):
    """What these losses take for a model of vectors of a `width` on a `device`: it gives those that stand in its features."""

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
    """Build the loss of a class for vectors of a width on a device, with its keyword arguments; one inside it is their `loss`.

    Raises:
        InputError: as `check_loss`, or a value that the class refuses.
    """
    check_loss(name, options, f"loss {name}")
    return _built(name, options, Encoded(width, device))


def _built(name: str, options: Mapping[str, Any], model: Encoded) -> nn.Module:
    from sentence_transformers.sentence_transformer import losses

    kind, given = getattr(losses, name), dict(options)
    if WIDTH in inspect.signature(kind.__init__).parameters:
        given.setdefault(WIDTH, model.width)
    if "loss" in given:
        given["loss"] = _built(*inner_loss(given["loss"], f"loss {name}"), model)
    try:
        built: nn.Module = kind(model, **given)
    except (TypeError, ValueError) as error:
        raise InputError("an option is invalid", where=f"loss {name}", why=str(error)) from error
    return built
