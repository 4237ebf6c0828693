"""One training step up to the gradients: batches, plans of the terms, encoding, losses, backward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crosslign.encoders.model import Model
from crosslign.errors import CrosslignError, InputError
from crosslign.memory import free_memory, is_out_of_memory
from crosslign.objectives.contract import Batch, Input, Part, checked_loss, ids_of, plan_of
from crosslign.training.draws import derive, seed_device, torch_generator
from crosslign.training.encoding import Cost, Encoding, Settings
from crosslign.training.memory import Sizes, TooLargeError
from crosslign.training.optimiser import Read
from crosslign.training.reduction import Reduction
from crosslign.training.terms import Stream
from crosslign.training.tokenised import Lookup


@dataclass(frozen=True)
class StepLoss:
    """What one step's loss was made of.

    Attributes:
        loss: weighted sum of the terms.
        terms: by term, its `loss` before weighting and what the objective logs.
        rows: examples of all batches.
        cost: what was encoded.
        ids: ids of the examples, for messages.
    """

    loss: float
    terms: dict[str, dict[str, float]]
    rows: int
    cost: Cost
    ids: list[str]


@dataclass(frozen=True)
class Launched:
    """A step up to the gradients, which a GPU may still be at: nothing has waited for its numbers.

    Attributes:
        loss: weighted sum of the terms.
        terms, cost, ids: as `StepLoss` has them; numbers of the device are tensors.
        vectors: of every input, without gradient, for the parts.
        sentences: those of every input of single sentences, [n, d], for the guards.
        read: of embedding tables with sparse gradients, which rows have one, where the host is to know it.
    """

    loss: Tensor
    terms: dict[str, dict[str, float | Tensor]]
    cost: Cost
    ids: list[str]
    vectors: dict[str, Tensor]
    sentences: list[Tensor]
    read: Read

    @property
    def tensors(self) -> list[Tensor]:
        """What is to be fetched, the loss first."""
        return [self.loss, *(value for logged in self.terms.values() for value in logged.values() if isinstance(value, Tensor))]

    def told(self, values: Sequence[Tensor]) -> StepLoss:
        """Return the step with its numbers, which are those of `tensors` on the CPU."""
        loss, *rest = map(float, values)
        given = iter(rest)
        terms = {
            term: {name: next(given) if isinstance(value, Tensor) else value for name, value in logged.items()}
            for term, logged in self.terms.items()
        }
        return StepLoss(loss, terms, len(self.ids), self.cost, self.ids)


class NotFiniteError(CrosslignError):
    """A loss or a gradient that is NaN or infinite; `ids` are those of all examples of its step."""

    ids: Sequence[str] = ()


@dataclass
class _Drawn:
    """One stream's batch, what its terms want encoded (`plans`: the names of each term's inputs), and the vectors as they come in."""

    stream: Stream
    batch: Batch
    lookup: Lookup
    inputs: dict[str, Input]
    plans: dict[str, list[str]]
    queries: Encoding | None = None
    cost: Cost = field(default_factory=Cost)
    vectors: dict[str, Tensor] = field(default_factory=dict)


class Stepper:
    """Draws batches, encodes them, sums the losses and leaves the gradients in the parameters.

    Args:
        model: the encoder, on the accelerator's device.
        parts: named state of the terms.
        streams: training sets with their terms.
        settings: what holds for every encoding.

    Attributes:
        micro_batches: bounds on the examples encoded at a time, by training set, beside those of the terms.
    """

    def __init__(self, model: Model, parts: Mapping[str, Part], streams: Sequence[Stream], settings: Settings) -> None:
        self.model, self.parts, self.streams, self.settings = model, parts, streams, settings
        self.micro_batches: dict[str, int] = {}
        self._ahead: tuple[int, list[_Drawn]] | None = None
        several = settings.accelerator.num_processes > 1
        self._reduction = Reduction(settings.accelerator, model, parts) if several else None

    def _draw(self, stream: Stream, step: int) -> _Drawn:
        batch, lookup = stream.store.batch(stream.order.at(step), step)
        inputs: dict[str, Input] = {}
        plans: dict[str, list[str]] = {}
        for term in stream.terms:
            draw = torch_generator(self.settings.seed, "draw", stream.name, step)
            plan = plan_of(term.name, term.objective, batch, draw)
            plans[term.name] = [*plan, *(ids_of(name) for name, item in plan.items() if item.masked)]
            for name, item in plan.items():
                if inputs.setdefault(name, item) != item:
                    first = next(other for other, names in plans.items() if name in names)
                    raise InputError(
                        f"two terms on {stream.name} need different inputs with the name {name!r}",
                        where=f"terms: {first} and {term.name}",
                        do="Give both the same pooling, layer and anchor_parallel, or train them on training sets with different names",
                    )
        return _Drawn(stream, batch, lookup, inputs, plans)

    def _encoding(self, drawn: _Drawn, keys: bool) -> Encoding | None:
        inputs = {name: item for name, item in drawn.inputs.items() if item.keys == keys}
        if not inputs:
            return None
        share = self._size(drawn) / len(drawn.batch)
        module = self._key_module if keys else self.model.member
        draw = (drawn.stream.name, drawn.batch.step, "keys" if keys else "queries")
        return Encoding(self.settings, inputs, drawn.lookup, module, self.model, share, draw)

    def _size(self, drawn: _Drawn) -> int:
        """Return how many examples of a batch a rank encodes at a time."""
        own = [drawn.stream.micro_batch, self.micro_batches.get(drawn.stream.name)]
        share = ceil(len(drawn.batch) / int(self.settings.accelerator.num_processes))
        return min([share, *(size for size in own if size)])

    def _drawn(self, step: int) -> list[_Drawn]:
        """Return the batches of a step, their queries grouped for the encoder; those of `prepare` where they are that step's."""
        (number, drawn), self._ahead = self._ahead or (-1, []), None
        if number != step:
            drawn = [self._draw(stream, step) for stream in self.streams]
            for item in drawn:
                item.queries = self._encoding(item, keys=False)
        return drawn

    def prepare(self, step: int) -> None:
        """Draw the batches of a step ahead of its `run`, while a GPU still computes the step before."""
        self._ahead = step, self._drawn(step)

    def cost(self, step: int) -> Cost:
        """Return what a step encodes, without encoding it."""
        found = Cost()
        for drawn in (self._draw(stream, step) for stream in self.streams):
            for keys in (False, True):
                if (encoding := self._encoding(drawn, keys)) is not None:
                    found += encoding.cost(gradient=not keys)
        return found

    def _sizes(self, drawn: Sequence[_Drawn]) -> dict[str, int]:
        return {item.stream.name: self._size(item) for item in drawn}

    def fits(self, step: int, sizes: Sizes) -> bool:
        """Tell whether a step's longest micro-batch of each set, of these sizes, can be encoded, queries with their backward pass.

        Parameters and parts stay as they are; gradients are cleared.
        """
        before, self.micro_batches = self.micro_batches, {**self.micro_batches, **sizes}
        try:
            for drawn in (self._draw(stream, step) for stream in self.streams):
                for keys in (False, True):
                    encoding = self._encoding(drawn, keys)
                    if encoding is not None:
                        encoding.try_longest(gradient=not keys)
            return True
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            self.micro_batches = before
            self.model.zero_grad(set_to_none=True)
            free_memory()

    def _key_module(self, member: str) -> nn.Module:
        for part in self.parts.values():
            if (module := part.key_member(member)) is not None:
                return module
        why = f"parts: {sorted(self.parts)}; member {member!r}"
        raise InputError("a term needs momentum keys, but no part has momentum copies", where="parts", why=why, do="Add a momentum_queue")

    def _losses(self, drawn: _Drawn, terms: dict[str, dict[str, float | Tensor]]) -> list[Tensor]:
        """Return the weighted losses of one stream; parts draw dropout alike on all ranks."""
        weighted = []
        for term in drawn.stream.terms:
            seed_device(self.settings.accelerator.device, derive(self.settings.seed, "loss", term.name, drawn.batch.step))
            vectors = {name: drawn.vectors[name] for name in drawn.plans[term.name]}
            loss = checked_loss(term.name, term.objective.loss(vectors, drawn.batch, self.parts))
            terms[term.name] = {"loss": loss.total.detach(), **loss.logged}
            weighted.append(term.weight * loss.total)
        return weighted

    def _encode(self, drawn: Sequence[_Drawn]) -> None:
        for item in drawn:
            if item.queries is not None:
                item.vectors |= item.queries.vectors(gradient=True)
                item.cost += item.queries.cost(gradient=True)
        for part in self.parts.values():
            part.before_keys()
        for item in drawn:
            keys = self._encoding(item, keys=True)
            if keys is not None:
                item.vectors |= keys.vectors(gradient=False)
                item.cost += keys.cost(gradient=False)

    def _total(self, drawn: Sequence[_Drawn]) -> tuple[Tensor, dict[str, dict[str, float | Tensor]]]:
        terms: dict[str, dict[str, float | Tensor]] = {}
        losses = [loss for item in drawn for loss in self._losses(item, terms)]
        return torch.stack(losses).sum(), terms

    def run(self, step: int, scaler: Any = None) -> Launched:
        """Do one step up to the gradients, which are summed over ranks; the loss may be NaN or infinite.

        Args:
            step: optimiser step, from 0.
            scaler: a gradient scaler for fp16, or None.

        Raises:
            TooLargeError: memory does not suffice.
        """
        drawn = self._drawn(step)
        ids = [row for item in drawn for row in item.batch.ids]
        alone = 0  # rows of the loss while no smaller micro-batch could make room for it
        try:
            self._encode(drawn)
            alone = 0 if any(item.queries is not None and item.queries.holds_graphs for item in drawn) else len(ids)
            total, terms = self._total(drawn)
            (scaler.scale(total) if scaler is not None else total).backward()
            alone = 0
            queries = [item.queries for item in drawn if item.queries is not None]
            for number, encoding in enumerate(queries, 1):
                encoding.backward(self._reduction.last_pass if self._reduction and number == len(queries) else nullcontext)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise TooLargeError(step + 1, self._sizes(drawn), str(error), alone) from error
        read = _read(queries)
        if self._reduction:
            self._reduction.finish(read, all(encoding.on_all_ranks for encoding in queries))
        vectors = {name: tensor.detach() for item in reversed(drawn) for name, tensor in item.vectors.items()}
        sentences = [item.vectors[name].detach() for item in drawn for name in single_sentences(item.inputs)]
        return Launched(total.detach(), terms, sum((item.cost for item in drawn), Cost()), ids, vectors, sentences, read)


def _read(queries: Sequence[Encoding]) -> Read:
    """Return which rows of embedding tables any of a step's encodings read."""
    found: dict[Tensor, NDArray[np.bool_]] = {}
    for encoding in queries:
        for table, rows in encoding.read().items():
            found[table] = found[table] | rows if table in found else rows
    return found


def single_sentences(inputs: Mapping[str, Input]) -> list[str]:
    """Return the names of the inputs that are single sentences, whole and encoded with gradient."""
    return [name for name, item in inputs.items() if not item.keys and item.pair_texts is None and not item.masked]


def not_finite(what: str, step: int, ids: Sequence[str], learning_rate: float, terms: Mapping[str, Any]) -> NotFiniteError:
    """Return the error of a diverged run."""
    shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
    error = NotFiniteError(
        f"{what} is not finite",
        where=f"step {step + 1}",
        why=f"learning rate {learning_rate:.3g}; terms {dict(terms)}; examples {shown}",
        do="Lower the learning rate, lengthen the warm-up or use precision bf16; the last good state is kept, and all examples are "
        "in the last line of curve.jsonl beside it",
    )
    error.ids = list(ids)
    return error
