"""Parts as a trained system left them: `parts.safetensors` of one of its checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torch import Tensor

from crosslign.entries.papers import RecipePart
from crosslign.errors import InputError
from crosslign.objectives import PARTS
from crosslign.objectives.contract import Part
from crosslign.registry import options_of

if TYPE_CHECKING:
    from crosslign.encoders.model import Model

log = logging.getLogger(__name__)
PARTS_FILE: Final = "parts.safetensors"


def state_of(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the state of one part, of tensors by `<part>.<name>`."""
    return {key.removeprefix(f"{name}."): tensor for key, tensor in tensors.items() if key.startswith(f"{name}.")}


def make_part(name: str, entry: Mapping[str, Any], model: Model, seed: int, where: str) -> Part:
    """Build a part from its entry in a recipe and attach it to the model.

    Raises:
        InputError: an unknown kind.
    """
    part = PARTS.get(entry["kind"], where)(**options_of("parts", entry))
    part.attach(model, seed)
    return part


def take_over(part: Part, name: str, checkpoint: Path | None, where: str) -> None:
    """Load the state that a part of this name has in a checkpoint's folder.

    Raises:
        InputError: the folder has no parts, or one that does not fit, or the part is of training alone.
    """
    from safetensors.torch import load_file

    if part.training_only:
        raise InputError("a trained system does not keep this part", where=where, do="Remove start_from: the part starts from the encoder")
    path = checkpoint / PARTS_FILE if checkpoint else None
    if path is None or not path.is_file():
        raise InputError("the base has no parts to start from", where=where, why=str(path or "it is an encoder, not a system"))
    try:
        part.load_state_dict(state_of(name, load_file(path)))
    except RuntimeError as error:
        raise InputError("the base system's part does not fit", where=where, why=" ".join(str(error).split())[:300]) from error


def take_published(part: Part, encoder: Path, where: str) -> None:
    """Load the state that a published encoder holds for a part; where it holds none the part stays as it is, and the log says so.

    Args:
        part: attached.
        encoder: folder of the encoder's weights.
        where: what messages call the part.

    Raises:
        InputError: parts of its kind are published nowhere, or what is there does not fit.
    """
    from safetensors import safe_open

    if not part.published:
        do = "Remove start_from: the part starts from new weights"
        raise InputError("no encoder is published with such a part", where=where, why=f"kind {type(part).__name__}", do=do)
    found: dict[str, Tensor] = {}
    for file in sorted(encoder.glob("*.safetensors")):
        with safe_open(file, "pt") as weights:
            there = set(weights.keys())
            found |= {own: weights.get_tensor(other) for own, other in part.published.items() if other in there}
    if len(found) < len(part.published):
        log.warning(
            "%s: the encoder has no %s; the part starts from new weights", where, ", ".join(sorted(set(part.published) - set(found)))
        )
        return
    try:
        part.load_state_dict(found)
    except RuntimeError as error:
        raise InputError("the encoder's part does not fit", where=where, why=" ".join(str(error).split())[:300]) from error
    log.info("%s: copied from the encoder", where)


def load_part(name: str, entry: RecipePart, model: Model, checkpoint: Path) -> Part:
    """Return a part of a trained system, as one of its checkpoints has it, on the system's model."""
    where = f"{checkpoint.parent.name}: part {name}"
    part = make_part(name, entry, model, 0, where)
    take_over(part, name, checkpoint, where)
    return part
