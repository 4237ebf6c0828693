"""The pooling and dense layers that SentenceTransformer puts behind some transformers (LaBSE, Sentence-T5): the encoder's own pooler."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from crosslign.encoders.pooling import POOLING_KEYS
from crosslign.encoders.weights import open_to_readers
from crosslign.errors import InputError
from crosslign.files import read_json, read_mapping, write_json

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "torch.nn.modules.activation.Tanh": nn.Tanh,
    "torch.nn.modules.activation.ReLU": nn.ReLU,
    "torch.nn.modules.activation.GELU": nn.GELU,
    "torch.nn.modules.linear.Identity": nn.Identity,
}
"""What follows a dense layer, by the names that SentenceTransformer writes; no other name is resolved."""
BERT_KIN = frozenset({"bert", "roberta", "xlm-roberta", "camembert"})
"""Model types whose pooler is one dense layer with tanh on the first token, and whose blocks' outputs have no norm behind them."""


class Dense(nn.Module):
    """Dense layers on a pooled vector, each with its activation.

    Args:
        pooling: how the states are pooled before them: `cls`, `mean`, `max` or `last`.
        layers: (linear, activation), one after another.

    Attributes:
        width: length of the vectors that come out.
    """

    def __init__(self, pooling: str, layers: Sequence[tuple[nn.Linear, nn.Module]]) -> None:
        super().__init__()
        self.pooling = pooling
        self.linears = nn.ModuleList(linear for linear, _ in layers)
        self.activations = nn.ModuleList(activation for _, activation in layers)
        self.width = layers[-1][0].out_features

    def forward(self, pooled: Tensor) -> Tensor:
        """Take float [n, d], give float [n, width]."""
        for linear, activation in zip(self.linears, self.activations, strict=True):
            pooled = activation(linear(pooled))
        return pooled

    @classmethod
    def of_pooler(cls, backbone: Any) -> Dense | None:
        """Return the pooler of a backbone of BERT's kin, its weights shared; None of another, or where it has none."""
        pooler = getattr(backbone, "pooler", None) if backbone.config.model_type in BERT_KIN else None
        return None if pooler is None else cls("cls", [(pooler.dense, nn.Tanh())])

    def equals(self, other: Dense) -> bool:
        """Tell whether two compute the same."""
        mine, theirs = self.state_dict(), other.state_dict()
        alike = self.pooling == other.pooling and [*map(type, self.activations)] == [*map(type, other.activations)]
        return alike and mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)

    @classmethod
    def load(cls, folder: Path) -> Dense | None:
        """Return what modules.json of a SentenceTransformer folder puts behind its pooling; None where it has no dense layer.

        Raises:
            InputError: as `modules_of`; a pooling or activation is none that is known, or there are no safetensors weights.
        """
        parts = {kind: [folder / path for name, path in modules_of(folder) if name == kind] for kind in ("Pooling", "Dense")}
        if not parts["Dense"]:
            return None
        return cls(named_pooling(parts["Pooling"][0] / "config.json"), [_layer(part) for part in parts["Dense"]])

    def save(self, folder: Path, first: int) -> list[str]:
        """Write `<folder>/<number>_Dense/` for each layer, numbered from `first`; return their names."""
        names = []
        known = {kind: name for name, kind in ACTIVATIONS.items()}
        for number, (linear, activation) in enumerate(zip(self.linears, self.activations, strict=True), first):
            assert isinstance(linear, nn.Linear)
            names.append(f"{number}_Dense")
            (folder / names[-1]).mkdir(parents=True, exist_ok=True)
            sizes = {"in_features": linear.in_features, "out_features": linear.out_features, "bias": linear.bias is not None}
            write_json(folder / names[-1] / "config.json", sizes | {"activation_function": known[type(activation)]})
            weights = {f"linear.{name}": value.detach().cpu().contiguous() for name, value in linear.state_dict().items()}
            save_file(weights, folder / names[-1] / "model.safetensors")
            open_to_readers(folder / names[-1])
        return names


MODULE = re.compile(r"sentence_transformers\.(?:.*\.)?(Transformer|Pooling|Dense|Normalize|Dropout)")
"""Types of SentenceTransformer's modules that are read; without any other one the vectors would be other vectors, in silence."""
ORDER = re.compile(r"Transformer Pooling( Dense)*( Normalize)?")
"""The orders of modules that are read, dropout left out, which changes nothing that is encoded."""


def modules_of(folder: Path) -> list[tuple[str, str]]:
    """Return kind and path of SentenceTransformer's modules in a folder, in their order and without dropout; none without modules.json.

    Raises:
        InputError: modules.json is no list of modules, or names modules, an order or a transformer that are not read.
    """
    place = folder / "modules.json"
    found = read_json(place) if place.is_file() else []
    if not isinstance(found, list) or not all(isinstance(m, dict) and {type(m.get("type")), type(m.get("path"))} == {str} for m in found):
        do = "Use the complete folder of its publisher, or one that SentenceTransformer saved"
        raise InputError("not a list of SentenceTransformer's modules", where=str(place), do=do)
    do = "Remove modules.json and give embedding settings, if the transformer alone is wanted"
    if unknown := sorted({m["type"] for m in found if not MODULE.fullmatch(m["type"])}):
        why = f"{', '.join(unknown)}; known: sentence_transformers' Transformer, Pooling, Dense, Normalize, Dropout"
        raise InputError("the encoder has unknown modules", where=str(place), why=why, do=do)
    named = [(m["type"].rpartition(".")[2], m["path"].rstrip("/")) for m in found]
    kinds = [(kind, path) for kind, path in named if kind != "Dropout"]
    if found and not ORDER.fullmatch(order := " ".join(kind for kind, _ in kinds)):
        why = f"found {order.replace(' ', ', ')}; read are Transformer, Pooling, any Dense, and at most one Normalize at the end"
        raise InputError("the encoder's modules have another order", where=str(place), why=why, do=do)
    if kinds and (folder / kinds[0][1]).resolve() != folder.resolve():
        why = f"it names the transformer in {kinds[0][1]!r}, and the one beside it would be read"
        raise InputError("the encoder has two transformers", where=str(place), why=why, do=f"Name the folder {folder / kinds[0][1]}")
    return kinds


def named_pooling(path: Path) -> str:
    """Return the pooling that a config names, in the older or the newer way."""
    config = read_mapping(path)
    older = [name for name, on in config.items() if name.startswith("pooling_mode_") and on]
    chosen = [config["pooling_mode"]] if "pooling_mode" in config else older
    for name, key in POOLING_KEYS.items():
        if chosen in ([name], [key], [f"pooling_mode_{key}"]):
            return name
    raise InputError("unknown pooling", where=str(path), why=f"found {', '.join(map(str, chosen))}; known: cls, mean, max, lasttoken")


def _layer(folder: Path) -> tuple[nn.Linear, nn.Module]:
    config = read_json(folder / "config.json")
    if config["activation_function"] not in ACTIVATIONS:
        why = f"{config['activation_function']}; known: {', '.join(ACTIVATIONS)}"
        raise InputError("unknown activation after a dense layer", where=str(folder / "config.json"), why=why)
    if not (folder / "model.safetensors").is_file():
        raise InputError("the dense layer has no safetensors weights", where=str(folder), why="pickled weights are never loaded")
    linear = nn.Linear(config["in_features"], config["out_features"], bias=config["bias"])
    linear.load_state_dict({name.removeprefix("linear."): value for name, value in load_file(folder / "model.safetensors").items()})
    return linear.float(), ACTIVATIONS[config["activation_function"]]()
