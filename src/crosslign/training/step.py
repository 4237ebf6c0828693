"""The forward and backward half of one training step, in the order of CONTRACTS 5 (docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn

from crosslign.encoders.memory import is_out_of_memory
from crosslign.encoders.model import Model
from crosslign.errors import CrosslignError, ResourceError
from crosslign.objectives.contract import Batch, Input, Part
from crosslign.training.encoding import Encoding, Settings
from crosslign.training.seeds import derive, torch_generator
from crosslign.training.store import Lookup
from crosslign.training.terms import Stream


@dataclass(frozen=True)
class StepLoss:
    """What one step's loss was made of.

    Attributes:
        loss: weighted sum of the terms.
        terms: by term, its `loss` before weighting and what the objective logs.
        rows: examples of all batches.
        ids: ids of the examples, for messages.
    """

    loss: float
    terms: dict[str, dict[str, float]]
    rows: int
    ids: list[str]


@dataclass
class _Drawn:
    """One stream's batch with what its terms want encoded, and the vectors as they come in."""

    stream: Stream
    batch: Batch
    lookup: Lookup
    inputs: dict[str, Input]
    queries: Encoding | None = None
    vectors: dict[str, Tensor] = field(default_factory=dict)


class Stepper:
    """Draws batches, encodes them, sums the losses and leaves the gradients in the parameters.

    Args:
        model: the encoder, on the accelerator's device.
        parts: named state of the terms.
        streams: training sets with their terms.
        settings: what holds for every encoding.
    """

    def __init__(self, model: Model, parts: Mapping[str, Part], streams: Sequence[Stream], settings: Settings) -> None:
        self.model, self.parts, self.streams, self.settings = model, parts, streams, settings

    def _draw(self, stream: Stream, step: int) -> _Drawn:
        batch, lookup = stream.store.batch(stream.order.at(step), step)
        inputs: dict[str, Input] = {}
        for term in stream.terms:
            draw = torch_generator(self.settings.seed, "draw", stream.name, step)
            for name, item in term.objective.inputs(batch, draw).items():
                if inputs.setdefault(name, item) != item:
                    raise ValueError(f"two terms on {stream.name} ask for different inputs called {name!r}")
        return _Drawn(stream, batch, lookup, inputs)

    def _encoding(self, drawn: _Drawn, keys: bool) -> Encoding | None:
        inputs = {name: item for name, item in drawn.inputs.items() if item.keys == keys}
        if not inputs:
            return None
        share = min(1.0, (drawn.stream.micro_batch or len(drawn.batch)) / len(drawn.batch))
        module = self._key_module if keys else self.model.member
        draw = (drawn.stream.name, drawn.batch.step, "keys" if keys else "queries")
        return Encoding(self.settings, inputs, drawn.lookup, module, self.model, share, draw)

    def _key_module(self, member: str) -> nn.Module:
        for part in self.parts.values():
            if (module := part.key_member(member)) is not None:
                return module
        raise ValueError(f"no part holds a momentum copy of the member {member!r}")

    def _losses(self, drawn: _Drawn, terms: dict[str, dict[str, float]]) -> list[Tensor]:
        """Return the weighted losses of one stream; parts draw dropout alike on all ranks."""
        weighted = []
        for term in drawn.stream.terms:
            torch.manual_seed(derive(self.settings.seed, "loss", term.name, drawn.batch.step))
            loss = term.objective.loss(drawn.vectors, drawn.batch, self.parts)
            terms[term.name] = {"loss": float(loss.total.detach()), **loss.logged}
            weighted.append(term.weight * loss.total)
        return weighted

    def _forward(self, drawn: Sequence[_Drawn]) -> tuple[Tensor, dict[str, dict[str, float]]]:
        for item in drawn:
            item.queries = self._encoding(item, keys=False)
            if item.queries is not None:
                item.vectors |= item.queries.vectors(gradient=True)
        for part in self.parts.values():
            part.before_keys()
        for item in drawn:
            keys = self._encoding(item, keys=True)
            if keys is not None:
                item.vectors |= keys.vectors(gradient=False)
        terms: dict[str, dict[str, float]] = {}
        losses = [loss for item in drawn for loss in self._losses(item, terms)]
        return torch.stack(losses).sum(), terms

    def run(self, step: int, learning_rate: float, scaler: Any = None) -> StepLoss:
        """Do one step up to the gradients, which are summed over ranks.

        Args:
            step: optimiser step, from 0.
            learning_rate: for messages.
            scaler: a gradient scaler for fp16, or None.

        Raises:
            CrosslignError: the loss is NaN or infinite; names step, examples and learning rate.
            ResourceError: memory does not suffice; says which micro-batch to try.
        """
        drawn = [self._draw(stream, step) for stream in self.streams]
        ids = [row for item in drawn for row in item.batch.ids]
        try:
            total, terms = self._forward(drawn)
            loss = float(total.detach())
            if not isfinite(loss):
                raise not_finite("the loss", step, ids, learning_rate, terms)
            vectors = {name: tensor.detach() for item in reversed(drawn) for name, tensor in item.vectors.items()}
            for part in self.parts.values():
                part.commit(vectors)
            (scaler.scale(total) if scaler is not None else total).backward()
            for item in drawn:
                if item.queries is not None:
                    item.queries.backward()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise _too_large(drawn, error) from error
        self._reduce()
        return StepLoss(loss, terms, len(ids), ids)

    def _reduce(self) -> None:
        """Sum the members' gradients over ranks; the parts' are equal everywhere, so their mean keeps the ranks in step."""
        accelerator = self.settings.accelerator
        if accelerator.num_processes == 1:
            return
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        own_touched = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int64, device=accelerator.device)
        touched = accelerator.reduce(own_touched, "sum")
        for parameter, ranks in zip(parameters, touched.tolist(), strict=True):
            if ranks:
                own = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
                parameter.grad = accelerator.reduce(own, "sum")
        for part in self.parts.values():
            for parameter in part.parameters():
                if parameter.grad is not None:
                    parameter.grad = accelerator.reduce(parameter.grad, "mean")


def not_finite(what: str, step: int, ids: Sequence[str], learning_rate: float, terms: Mapping[str, Any]) -> CrosslignError:
    """Return the error of a diverged run."""
    shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
    return CrosslignError(
        f"{what} is not finite",
        where=f"step {step + 1}",
        why=f"learning rate {learning_rate:.3g}; terms {dict(terms)}; examples {shown}",
        do="Lower the learning rate, lengthen the warm-up or use precision bf16; the last good checkpoint is kept",
    )


def _too_large(drawn: Sequence[_Drawn], error: BaseException) -> ResourceError:
    sizes = {item.stream.name: item.stream.micro_batch or len(item.batch) for item in drawn}
    half = {name: max(1, size // 2) for name, size in sizes.items()}
    return ResourceError(
        "the batch does not fit into memory",
        where=f"step {drawn[0].batch.step + 1}",
        why=f"examples encoded at a time: {sizes}; {str(error).splitlines()[0][:200]}",
        do=f"Set micro_batch of the term to {half}: the loss stays that of the whole batch",
    )
