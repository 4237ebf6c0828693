"""What the trainer and every objective share: batches, inputs, losses, parts; reading a batch; cosines (docs/add-a-method.md).

Order: the types, checks of what an objective returns, what is read off a batch, a term's part, arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeVar

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import normalize

from crosslign.devices import APPLE, numbers_on, wide
from crosslign.errors import InputError
from crosslign.registry import nearest

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

    @cached_property
    def with_negative(self) -> list[int]:
        """Numbers of the rows that have a hard negative c."""
        return [row for row, text in enumerate(self.columns.get("c_text") or []) if text is not None]


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
        masked: share of the tokens that are masked, in [0, 1). Above 0 the input gives no vector a sentence: it gives the last layer's
            states of its masked tokens, [m, d], and under `ids_of` of its name what they were, int64 [m].
    """

    texts: Sequence[str]
    langs: Sequence[str]
    pair_texts: Sequence[str] | None = None
    keys: bool = False
    pooling: str | None = None
    layer: int | None = None
    masked: float = 0.0


def ids_of(name: str) -> str:
    """Return the name under which the ids of a masked input's tokens stand beside their states."""
    return f"{name}_ids"


@dataclass(frozen=True)
class Loss:
    """A float32 scalar with gradient, and numbers for the log: of the device, tensors of one element, which are fetched all at once."""

    total: Tensor
    logged: Mapping[str, float | Tensor] = field(default_factory=dict)


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
    elif not all(isinstance(name, str) and _is_number(value) for name, value in loss.logged.items()):
        found = f"it logs {', '.join(f'{name!r}: {type(value).__name__}' for name, value in loss.logged.items())}"
    if found:
        do = "Return a scalar float tensor, or Loss(total, logged) with a dict of numbers, or tensors of one element (docs/add-a-method.md)"
        raise InputError("not a loss", where=f"loss of the objective {objective}", why=found, do=do)
    return loss if loss.total.ndim == 0 else Loss(loss.total.reshape(()), loss.logged)


def _is_number(value: Any) -> bool:
    return value.numel() == 1 if isinstance(value, Tensor) else isinstance(value, int | float)


def checked_inputs(objective: str, returned: Any) -> dict[str, Input]:
    """Return what an objective's `inputs` returned.

    Raises:
        InputError: it is not a mapping of names to `Input`, there are none, or an input has other numbers of texts, languages or seconds.
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
                found = f"the numbers of texts, languages and second texts of {name!r} are {', '.join(map(str, counts))}"
    if found:
        do = "Return a dict of Input(texts, langs), both of equal length (docs/add-a-method.md)"
        raise InputError("the inputs cannot be encoded", where=f"inputs of the objective {objective}", why=found, do=do)
    return dict(returned)


def plan_of(name: str, objective: Objective, batch: Batch, draw: Generator) -> dict[str, Input]:
    """Return what an objective wants encoded of a batch, checked; its options `pooling` and `layer`, where it has them, hold for all of it.

    Args:
        name: of the objective, for messages.
        objective: as the trainer built it.
        batch: what it reads.
        draw: generator of draws made per batch.
    """
    own = {key: getattr(objective, key, None) for key in ("pooling", "layer")}
    given = {key: value for key, value in own.items() if value is not None}
    plan = checked_inputs(name, objective.inputs(batch, draw))
    return {key: replace(item, **given) for key, item in plan.items()} if given else plan


class Part(nn.Module):
    """Named state that terms share: a projection, a head, a mixture, a queue with its momentum members.

    Attributes:
        training_only: nothing but training needs this part: saved states keep it, a trained system does not.
        published: where published encoders keep such a part, its tensors by own name: what `start_from: encoder` takes over.
    """

    training_only: ClassVar[bool] = False
    published: ClassVar[Mapping[str, str]] = {}

    def attach(self, model: Model, seed: int) -> None:
        """Build what depends on the model (dimensions, momentum copies) from the run's seed."""

    def before_keys(self) -> None:
        """Run after the queries are encoded and before the keys are: the moving average of momentum members."""

    def commit(self, vectors: dict[str, Tensor]) -> None:
        """Run once a step whose loss is finite, after the backward pass: enqueue keys, update rank scores."""

    def key_member(self, name: str) -> nn.Module | None:
        """Return the momentum copy of a member, or None where the part holds none."""
        return None


class Objective(Protocol):
    """One term of a training loss; options of the term in the recipe are its constructor's keyword arguments.

    `inputs` plans what is to be encoded, by name; `loss` gets the vectors of that plan, under the same names and no others: float32 of
    shape [n, d] (not normalised), gathered over micro-batches and ranks. An objective whose `whole_groups` is true gets batches in which
    no row of a `group` is missing.
    """

    shape: Shape

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return the sentences to encode, by name; `draw` is the generator of draws made per batch."""
        ...

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the loss of the joint batch."""
        ...


def side(batch: Batch, name: str) -> Input:
    """Return one side (`a`, `b` or `c`) of all rows.

    Where b is null the row is a dropout pair: its b is the a sentence once more, as in SimCSE.
    """
    columns = batch.columns
    texts, langs = columns[f"{name}_text"], columns[f"{name}_lang"]
    if name == "b":
        langs = [own if text is not None else lang for text, own, lang in zip(texts, langs, columns["a_lang"], strict=True)]
        texts = [own if own is not None else text for own, text in zip(texts, columns["a_text"], strict=True)]
    return Input(list(texts), list(langs))


def both_sides(batch: Batch) -> dict[str, Input]:
    """Return sides a and b; a set without b columns holds dropout pairs only."""
    if "b_text" not in batch.columns:
        again = side(batch, "a")
        return {"a": again, "b": again}
    return {"a": side(batch, "a"), "b": side(batch, "b")}


def hard_negatives(batch: Batch) -> dict[str, Input]:
    """Return the hard negatives of the rows that have one (`batch.with_negative`) as the input `c`; nothing where no row has any."""
    if not batch.with_negative:
        return {}
    texts, langs = ([batch.columns[name][row] for row in batch.with_negative] for name in ("c_text", "c_lang"))
    return {"c": Input(texts, langs)}


def labels_of(batch: Batch) -> Sequence[list[float] | None]:
    """Return the label of every row.

    Raises:
        InputError: the training set has none.
    """
    labels = batch.columns.get("label")
    if labels is None:
        do = "Name a set of labelled rows (builder labelled_rows), or give a column label"
        raise InputError("these examples have no labels", where=f"row {batch.ids[0]}", why=f"columns {sorted(batch.columns)}", do=do)
    return labels


def class_of(batch: Batch, device: torch.device | None = None) -> Tensor:
    """Return the class number of every row, int64 [B].

    Raises:
        InputError: the set has no labels, or a row none or several, or one that is not a whole number.
    """
    labels = labels_of(batch)
    for row, label in zip(batch.ids, labels, strict=True):
        if label is None or len(label) != 1 or label[0] % 1:
            raise InputError("each row needs one class, a whole number", where=f"row {row}", why=f"its label is {label}")
    return numbers_on(device, [int(label[0]) for label in labels if label])


def supervised(batch: Batch, device: torch.device | None = None) -> Tensor:
    """Return bool [B]: which rows' labels may be learnt from; rows that do not say so may."""
    flags = batch.columns.get("supervised") or [None] * len(batch)
    return numbers_on(device, [flag is not False for flag in flags])


def text_codes(*lists: Sequence[str], device: torch.device | None = None) -> list[Tensor]:
    """Return int64 numbers, one per text of each list, that are equal where the texts are."""
    codes: dict[str, int] = {}
    return [numbers_on(device, [codes.setdefault(text, len(codes)) for text in texts]) for texts in lists]


def equal(a: Tensor, b: Tensor) -> Tensor:
    """Return bool [n, m]: whether code i of a [n] equals code j of b [m]."""
    return a.unsqueeze(1) == b.unsqueeze(0)


P = TypeVar("P", bound=Part)


def part_of(parts: Mapping[str, Part], name: str, kind: type[P]) -> P:
    """Return the part called `name`.

    Args:
        parts: the recipe's parts.
        name: as the term names it.
        kind: class that it must be an instance of.

    Raises:
        InputError: the recipe has no such part, or one of another kind.
    """
    if name not in parts:
        raise InputError(f"a term names an unknown part {name!r}", where="parts", why=nearest(name, list(parts)))
    part = parts[name]
    if not isinstance(part, kind):
        own, wanted = (c.__module__.rsplit(".", 1)[-1] for c in (type(part), kind))
        raise InputError(f"a term cannot use the part {name!r}", where="parts", why=f"its kind is {own}, not {wanted}")
    return part


MASKED: Final = -1e30
"""Score of what a mask leaves out: exp of it is 0, and unlike −inf it lets no NaN into the gradient of an empty row."""


def widened(values: Tensor) -> Tensor:
    """Return values of half precision as float32, and float32 or float64 as they are: losses are never computed in less."""
    return values.float() if values.element_size() < 4 else values


def wide_type(vectors: Tensor) -> torch.dtype:
    """Return the type for small differences of large numbers: float64 on a CPU, float32 on a GPU, where float64 may be 64 times slower."""
    return torch.float64 if vectors.device.type == "cpu" else torch.float32


def unit(vectors: Tensor) -> Tensor:
    """Return the rows of [..., d] at length 1, in float32 at least; a zero row stays zero."""
    return normalize(widened(vectors), dim=-1)


def cosines(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosines [n, m] of the rows of a [n, d] and b [m, d]."""
    return unit(a) @ unit(b).T


def kept_logsumexp(scores: Tensor, keep: Tensor) -> Tensor:
    """Return log Σ exp over the scores [n, m] of each row that `keep` [n, m] marks.

    A row where nothing is kept gives about −1e30, and no gradient.
    """
    return scores.masked_fill(~keep, MASKED).logsumexp(1)


def mean_of(values: Tensor) -> Tensor:
    """Return the mean as a number for the log; 0 of nothing."""
    return values.detach().float().mean() if values.numel() else torch.zeros((), device=values.device)


def chosen(values: Tensor, mask: Tensor, count: int) -> Tensor:
    """Return `values[mask]`, of any one shape, where the host knows how many there are: a GPU need not be asked."""
    if values.device.type == APPLE:
        return values[mask]
    return values.flatten().index_select(0, torch.nonzero_static(mask.flatten(), size=count).squeeze(1))


def share_of(count: Tensor, rows: int) -> Tensor:
    """Return a share for the log, of a count that the device knows and one that the host knows."""
    return wide(count.detach()) / rows
