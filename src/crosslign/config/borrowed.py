"""Losses of sentence-transformers by name: those that have no place here, and the options of the others, read from its source."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import Any

from crosslign.errors import InputError
from crosslign.registry import nearest, outline_of, source_of

PACKAGE = "sentence_transformers.sentence_transformer.losses"
_CACHED = ("CachedMultipleNegativesRankingLoss", "CachedMultipleNegativesSymmetricRankingLoss", "CachedGISTEmbedLoss")
_OWN_PASSES = (
    "it encodes texts itself (in parts, or with another model), but this trainer has already encoded them; here micro_batch limits memory"
)
REFUSED = {
    **dict.fromkeys((*_CACHED, "GISTEmbedLoss", "MegaBatchMarginLoss"), _OWN_PASSES),
    **dict.fromkeys(("AdaptiveLayerLoss", "Matryoshka2dLoss"), "it slices the model's layers, to which a loss has no access here"),
    **dict.fromkeys(("ContrastiveTensionLoss", "ContrastiveTensionLossInBatchNegatives"), "it trains two copies of the model"),
    "DenoisingAutoEncoderLoss": "it needs the model's tokenizer or decoder",
}
"""Losses that have no place here, and why."""
GIVEN = ("gather_across_devices", "kwargs")
"""Arguments that no file gives."""
WIDTH = "embedding_dimension"
"""An option that is the model's width where nothing else is given."""


@functools.cache
def losses() -> Mapping[str, Mapping[str, bool]]:
    """Return the losses that sentence-transformers has, and the options of each with whether it must be given.

    Nothing is imported, which would take seconds.
    """
    path, found = source_of(PACKAGE), {}
    for file in sorted(path.parent.glob("[!_]*.py")) if path else ():
        for node in outline_of(f"{PACKAGE}.{file.stem}").body:
            for part in node.body if isinstance(node, ast.ClassDef) and node.name.endswith("Loss") else ():
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    named = [one.arg for one in part.args.args]
                    needed = {*named[: len(named) - len(part.args.defaults)]} - {WIDTH}
                    found[str(getattr(node, "name", ""))] = {one: one in needed for one in named[2:] if one not in GIVEN}
    return found


def check_loss(name: str, options: Mapping[str, Any], where: str) -> None:
    """Check the class of a loss and its options (keyword arguments; `loss` as `inner_loss` takes it) against its signature.

    Raises:
        InputError: no such loss or option, or a loss that has no place here; says why. `where` is for the message.
    """
    if name in REFUSED:
        raise InputError(f"this trainer cannot use the loss {name}", where=where, why=REFUSED[name])
    known = {loss: taken for loss, taken in losses().items() if loss not in REFUSED}
    if name not in known:
        raise InputError(f"sentence-transformers has no loss {name!r}", where=where, why=nearest(name, list(known)))
    if unknown := sorted(set(options) - set(known[name])):
        raise InputError(f"{name} has no option {unknown[0]!r}", where=where, why=nearest(unknown[0], list(known[name])))
    if missing := [option for option, needed in known[name].items() if needed and option not in options]:
        raise InputError(f"{name} needs the option {missing[0]!r}", where=where, do="Add it to the loss's options")
    if "loss" in options:
        check_loss(*inner_loss(options["loss"], where), where)


def inner_loss(given: Any, where: str) -> tuple[str, Mapping[str, Any]]:
    """Return name and options of a loss inside another; raise an `InputError` where it is neither a name, nor its `loss` and `options`."""
    own = given if isinstance(given, Mapping) else {"loss": given}
    name, options = own.get("loss"), own.get("options") or {}
    if not isinstance(name, str) or not isinstance(options, Mapping) or set(own) - {"loss", "options"}:
        what = "a loss inside another loss must be a name, or a mapping with `loss` and `options`"
        raise InputError(what, where=where, why=f"found {given!r}")
    return name, options
