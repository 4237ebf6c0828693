"""Losses of sentence-transformers, computed on vectors that the trainer encoded."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from crosslign.errors import InputError
from crosslign.registry import nearest

_OWN_PASSES = "it encodes by itself, in parts or with another model, where this trainer has encoded already; micro_batch bounds memory here"
_SLICES = "it slices the model's layers, which a loss cannot reach here"
_TOKENIZER = "it wants the model's tokenizer or its decoder"
REFUSED = {
    "CachedMultipleNegativesRankingLoss": _OWN_PASSES,
    "CachedMultipleNegativesSymmetricRankingLoss": _OWN_PASSES,
    "CachedGISTEmbedLoss": _OWN_PASSES,
    "GISTEmbedLoss": _OWN_PASSES,
    "MegaBatchMarginLoss": _OWN_PASSES,
    "AdaptiveLayerLoss": _SLICES,
    "Matryoshka2dLoss": _SLICES,
    "DenoisingAutoEncoderLoss": _TOKENIZER,
    "ContrastiveTensionLoss": "it trains two copies of the model",
}
"""Losses that have no place here, and why."""


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
    """Build a loss of sentence-transformers; a loss inside it is an option `loss` with that one's name.

    Args:
        name: of its class, such as `CoSENTLoss`.
        options: its keyword arguments but for the model, checked against its signature.
        width: length of the vectors.
        device: of the vectors.

    Raises:
        InputError: no such loss or option, or a loss that has no place here; says why.
    """
    return _built(name, options, Encoded(width, device))


def _built(name: str, options: Mapping[str, Any], model: Encoded) -> nn.Module:
    from sentence_transformers.sentence_transformer import losses

    where = f"loss {name}"
    if name in REFUSED:
        raise InputError(f"{name} is no loss for this trainer", where=where, why=REFUSED[name])
    known = [found for found in vars(losses) if found.endswith("Loss") and found not in REFUSED]
    if name not in known:
        raise InputError(f"sentence-transformers has no loss {name!r}", where=where, why=nearest(name, known))
    kind = getattr(losses, name)
    given = dict(options)
    options_of = list(inspect.signature(kind.__init__).parameters)[2:]
    taken = [option for option in options_of if option not in ("gather_across_devices", "kwargs")]
    if unknown := sorted(set(given) - set(taken)):
        raise InputError(f"{name} has no option {unknown[0]!r}", where=where, why=nearest(unknown[0], taken))
    if "embedding_dimension" in taken:
        given.setdefault("embedding_dimension", model.width)
    if isinstance(inner := given.get("loss"), str):
        given["loss"] = _built(inner, {}, model)
    try:
        built: nn.Module = kind(model, **given)
    except (TypeError, ValueError) as error:
        raise InputError("an option does not fit", where=where, why=str(error)) from error
    return built
