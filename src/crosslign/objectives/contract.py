"""The contract between the one trainer and every objective: batches, inputs, losses, parts (CONTRACTS 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from torch import Generator, Tensor, nn

from crosslign.errors import InputError

if TYPE_CHECKING:
    from crosslign.encoders.model import Model

Shape = Literal["pairs", "triplets", "groups", "labelled"]


@dataclass(frozen=True)
class Batch:
    """Rows drawn from one training set.

    Attributes:
        ids: row ids of the examples, for messages and logs.
        columns: the columns of the shape (`a_text`, `b_lang`, `label` …), each a list of length B; a null is None.
        step: optimiser step, from 0.
    """

    ids: Sequence[str]
    columns: Mapping[str, Sequence[Any]]
    step: int = 0

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Input:
    """Sentences that an objective wants encoded.

    Attributes:
        texts: n sentences.
        langs: n language codes; they pick the member of the model.
        pair_texts: n second segments for a cross-encoder, or None.
        keys: encode with the momentum members and without gradient.
        pooling: a pooling other than the recipe's readout, or None.
        layer: the layer that is pooled, numbered as a readout's; None: the last where `pooling` is given, else the readout's.
    """

    texts: Sequence[str]
    langs: Sequence[str]
    pair_texts: Sequence[str] | None = None
    keys: bool = False
    pooling: str | None = None
    layer: int | None = None


@dataclass(frozen=True)
class Loss:
    """A float32 scalar with gradient, and plain numbers for the log."""

    total: Tensor
    logged: dict[str, float] = field(default_factory=dict)


def checked_loss(objective: str, returned: Any) -> Loss:
    """Return what an objective's `loss` returned as a `Loss`; a scalar tensor is one that logs nothing.

    Raises:
        InputError: it is neither, no scalar, or its numbers for the log are none; says what was expected.
    """
    loss = Loss(returned) if isinstance(returned, Tensor) else returned
    found = ""
    if not isinstance(loss, Loss) or not isinstance(loss.total, Tensor):
        found = f"it returned {type(returned).__name__}"
    elif loss.total.numel() != 1 or not loss.total.is_floating_point():
        found = f"it returned {loss.total.dtype} of shape {list(loss.total.shape)}"
    elif not all(isinstance(name, str) and isinstance(value, int | float) for name, value in loss.logged.items()):
        found = f"it logs {', '.join(f'{name!r}: {type(value).__name__}' for name, value in loss.logged.items())}"
    if found:
        do = "Return a float scalar tensor, or Loss(total, logged) with plain numbers by name (docs/add-a-method.md)"
        raise InputError("not a loss", where=f"loss of the objective {objective}", why=found, do=do)
    return loss if loss.total.ndim == 0 else Loss(loss.total.reshape(()), loss.logged)


def checked_inputs(objective: str, returned: Any) -> dict[str, Input]:
    """Return what an objective's `inputs` returned.

    Raises:
        InputError: it is no mapping of names to `Input`, there are none, or an input has other numbers of texts, languages or seconds.
    """
    found = ""
    if not isinstance(returned, Mapping) or not all(isinstance(item, Input) for item in returned.values()):
        found = f"it returned {type(returned).__name__}"
    elif not returned:
        found = "it returned no input"
    else:
        for name, item in returned.items():
            counts = [len(column) for column in (item.texts, item.langs, item.pair_texts) if column is not None]
            if len(set(counts)) > 1 or not counts[0]:
                found = f"{name!r} has {' and '.join(map(str, counts))} texts, languages and second texts"
    if found:
        do = "Return Input(texts, langs) by name, both of one length (docs/add-a-method.md)"
        raise InputError("nothing that can be encoded", where=f"inputs of the objective {objective}", why=found, do=do)
    return dict(returned)


class Part(nn.Module):
    """Named state that terms share: a projection, a head, a mixture, a queue with its momentum members.

    Attributes:
        training_only: nothing but training needs this part: checkpoints for resume keep it, a trained system does not.
    """

    training_only: ClassVar[bool] = False

    def attach(self, model: Model, seed: int) -> None:
        """Build what depends on the model (dimensions, momentum copies) from the run's seed."""

    def before_keys(self) -> None:
        """Run after the queries are encoded and before the keys are: the moving average of momentum members."""

    def commit(self, vectors: dict[str, Tensor]) -> None:
        """Run once a step, after the loss and before the backward pass: enqueue keys, update rank scores."""

    def key_member(self, name: str) -> nn.Module | None:
        """Return the momentum copy of a member, or None where the part holds none."""
        return None


class Objective(Protocol):
    """One term of a training loss; options of the term in the recipe are its constructor's keyword arguments.

    `inputs` names what is to be encoded; `loss` gets, under the same names, float32 vectors of shape [n, d]
    (not normalised), gathered over micro-batches and ranks. An objective whose `whole_groups` is true gets batches in which
    no row of a `group` is missing.
    """

    shape: Shape

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return the sentences to encode, by name; `draw` is the generator of draws made per batch."""
        ...

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the loss of the joint batch."""
        ...
