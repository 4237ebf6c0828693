"""AdamW, learning-rate schedule, gradient clipping, and the update of the used rows of embedding tables alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, cos, nan, pi
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crosslign.devices import APPLE, distinct_rows, sent, wide
from crosslign.encoders.model import Model
from crosslign.entries.papers import Train
from crosslign.entries.resolved import RunRecipe
from crosslign.errors import InputError
from crosslign.objectives.contract import Part

SCHEDULES: Final = ("linear", "cosine", "constant")


def multiplier(schedule: str, step: int, steps: int, warmup: int = 0, final_share: float = 0.0) -> float:
    """Return the factor of the peak learning rate at one step.

    Args:
        schedule: `linear` and `cosine` decay to `final_share` of it at the end, `constant` does not decay.
        step: optimiser step, from 0.
        steps: steps in total.
        warmup: steps of linear warm-up from 0.
        final_share: of the peak, what `linear` and `cosine` end at.
    """
    if step < warmup:
        return step / warmup
    if schedule == "constant":
        return 1.0
    left = max(0.0, (steps - step) / max(1, steps - warmup))
    if schedule == "linear":
        return final_share + (1.0 - final_share) * left
    if schedule == "cosine":
        return final_share + (1.0 - final_share) * 0.5 * (1.0 + cos(pi * (1.0 - left)))
    raise ValueError(f"schedule {schedule!r} is none of {SCHEDULES}")


def warmup_of(train: Train, steps: int) -> int:
    """Return the steps of warm-up of a run of so many steps: `warmup_share` of them, rounded up, or `warmup_steps`."""
    share = train.get("warmup_share")
    return ceil(round(share * steps, 6)) if share is not None else int(train.get("warmup_steps", 0))


def total_steps(per_epoch: int, epochs: float | None, steps: int | None) -> int:
    """Return the optimiser steps of a run.

    Args:
        per_epoch: steps of one pass over the examples of the first term.
        epochs: such passes, or None.
        steps: upper bound, or None; without both it is one epoch.
    """
    epochs = epochs if epochs is not None else (None if steps else 1.0)
    whole = ceil(round(epochs * per_epoch, 6)) if epochs is not None else steps  # 1.1 * 50 is a little more than 55
    assert whole is not None
    return min(whole, steps) if steps else whole


def steps_within(budget: float, flops: Callable[[int], float], where: str) -> int:
    """Return how many steps of a training come nearest to a budget.

    Args:
        budget: FLOPs of the encoder.
        flops: of a step, from 0; batches are functions of seed and step, so it is known without encoding.
        where: the system, for messages.

    Raises:
        InputError: the first step alone takes more than twice the budget.
    """
    spent, steps = 0.0, 0
    while True:
        own = flops(steps)
        if spent + own > budget:
            break
        spent, steps = spent + own, steps + 1
    steps += spent + own - budget < budget - spent
    if steps == 0:
        why = f"a step takes {own:.3g} FLOPs, the budget is {budget:.3g}"
        raise InputError("the budget is too small for one step", where=f"{where}: train.budget", why=why, do="Raise it, or lower `batch`")
    return steps


Read = Mapping[Tensor, NDArray[np.bool_]]
"""Of embedding tables, which rows a step has read."""
WORTH = {"cpu": 0.19, "cuda": 0.37}
"""Share of a table's rows up to which touching these alone takes less time than AdamW over all, by kind of device."""


@dataclass
class RowGradient:
    """A gradient of some rows of a table.

    Attributes:
        parameter: the table, [n, d].
        group: its options in AdamW.
        places: int64 [r], rising row numbers.
        values: [r, d], their gradient.
        used: int64, rising numbers of all rows that ever had one.
    """

    parameter: Tensor
    group: dict[str, Any]
    places: Tensor
    values: Tensor
    used: Tensor


class RowUpdates:
    """AdamW of embedding tables with sparse gradients: only rows that were ever used are updated, to the bytes that all rows would get.

    A row without any gradient so far has moments of zero, and AdamW without weight decay leaves it as it is. A batch uses some thousand
    rows of a quarter of a million, so most of the time and memory traffic of the update is saved.

    Args:
        adamw: the optimiser; its state keeps the moments, as dense tensors.
    """

    def __init__(self, adamw: torch.optim.AdamW) -> None:
        self._adamw = adamw
        self._used: dict[Tensor, tuple[NDArray[np.bool_], Tensor]] = {}

    def forget(self) -> None:
        """Forget which rows were used: after a state was loaded, its moments say."""
        self._used.clear()

    def _used_rows(self, table: Tensor, places: NDArray[np.int64]) -> Tensor:
        """Return the rising numbers of the rows that were ever used, those at `places` among them; moments of all others are zero."""
        if table not in self._used:
            state = self._adamw.state.get(table, {})
            moments = [(state[name] != 0).any(1).cpu().numpy() for name in ("exp_avg", "exp_avg_sq") if name in state]
            self._used[table] = np.logical_or.reduce([np.zeros(len(table), np.bool_), *moments]), torch.empty(0)
        used, known = self._used[table]
        if not len(known) or not used[places].all():
            used[places] = True
            self._used[table] = used, sent(torch.from_numpy(np.flatnonzero(used)), table.device)
        return self._used[table][1]

    def take(self, read: Read | None = None) -> list[RowGradient]:
        """Return the sparse gradients, taken from their parameters; those that must be dense, or nearly are, become it.

        Args:
            read: which rows have a gradient, at least, where the host knows it; else it waits until it does.
        """
        taken = []
        for group in self._adamw.param_groups:
            for table in group["params"]:
                if table.grad is None or not table.grad.is_sparse:
                    continue
                places, values, known = summed(table.grad, None if read is None else read.get(table))
                used = self._used_rows(table, known)
                table.grad = None
                if group["weight_decay"] or len(used) > WORTH.get(table.device.type, WORTH["cuda"]) * len(table):
                    with distinct_rows():
                        table.grad = torch.zeros_like(table).index_copy_(0, places, values)
                else:
                    taken.append(RowGradient(table, group, places, values, used))
        return taken

    @torch.no_grad()
    def step(self, rows: RowGradient, left_out: Tensor) -> None:
        """Update the rows that were ever used.

        Args:
            rows: what `take` gave.
            left_out: float32, 1 where the update is left out.
        """
        table, group, state = rows.parameter, rows.group, self._adamw.state[rows.parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=table.device)  # where AdamW, fused, has it
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(table), torch.zeros_like(table)
        used = rows.used
        gradient = table.new_zeros(len(used), table.shape[1])
        with distinct_rows():
            gradient.index_copy_(0, torch.searchsorted(used, rows.places), rows.values)
        whole = [table, state["exp_avg"], state["exp_avg_sq"]]
        parts = [tensor.index_select(0, used) for tensor in whole]
        state["step"] += 1
        torch._fused_adamw_(
            [parts[0]], [gradient], [parts[1]], [parts[2]], [], [state["step"]],
            amsgrad=False, lr=group["lr"], beta1=group["betas"][0], beta2=group["betas"][1], weight_decay=0.0, eps=group["eps"],
            maximize=False, found_inf=left_out,
        )  # fmt: skip
        state["step"] -= left_out
        with distinct_rows():
            for tensor, part in zip(whole, parts, strict=True):
                tensor.index_copy_(0, used, part)


def summed(gradient: Tensor, read: NDArray[np.bool_] | None) -> tuple[Tensor, Tensor, NDArray[np.int64]]:
    """Return the rows of a sparse gradient, rising, the sum of each one's values, and the rows as the host knows them.

    Args:
        gradient: of a table.
        read: which rows it has, at least; without it a GPU is asked.
    """
    if read is None:
        gradient = gradient.coalesce()
        places = gradient.indices()[0]
        return places, gradient.values(), places.cpu().numpy()
    known = np.flatnonzero(read)
    places, values = sent(torch.from_numpy(known), gradient.device), gradient._values()
    sums = values.new_zeros(len(known), values.shape[1])
    return places, sums.index_add_(0, torch.searchsorted(places, gradient._indices()[0]), values), known


def _groups(module: nn.Module, peak: float, decay: float, decayed: str) -> list[dict[str, Any]]:
    """Return parameter groups with and without weight decay: biases and norms (one dimension) have none, unless `decayed` is all."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    least = 0 if decayed == "all" else 2
    groups = [
        {"params": [p for p in parameters if p.ndim >= least], "weight_decay": decay, "peak": peak},
        {"params": [p for p in parameters if p.ndim < least], "weight_decay": 0.0, "peak": peak},
    ]
    return [group for group in groups if group["params"]]


class Optimiser:
    """AdamW, its schedule and gradient clipping.

    Args:
        recipe: `train` (learning_rate, schedule, final_share, warmup_steps or warmup_share, weight_decay, decayed, clip, betas,
            epsilon) and `parts`, of which
            each may carry its own learning_rate and clip.
        model: the encoder.
        parts: named state of the terms.
        steps: steps of the run.
    """

    def __init__(self, recipe: RunRecipe, model: Model, parts: Mapping[str, Part], steps: int) -> None:
        train = recipe["train"]
        self._schedule, self._warmup, self._steps = train["schedule"], warmup_of(train, steps), steps
        self._final_share: float = train.get("final_share", 0.0)
        self.peak: float = train["learning_rate"]
        decay, decayed = train.get("weight_decay", 0.0), train.get("decayed", "matrices")
        groups = _groups(model, self.peak, decay, decayed)
        self._clips: list[tuple[float | None, list[Tensor]]] = [(train.get("clip"), [p for g in groups for p in g["params"]])]
        for name, part in parts.items():
            options: Mapping[str, Any] = recipe["parts"].get(name, {})
            own = _groups(part, options.get("learning_rate", self.peak), decay, decayed)
            groups += own
            parameters = [p for group in own for p in group["params"]]
            if "clip" in options:
                self._clips.append((options["clip"], parameters))
            else:
                self._clips[0][1].extend(parameters)
        self._parameters = [p for group in groups for p in group["params"]]
        first, second = train.get("betas", (0.9, 0.999))
        self.adamw = torch.optim.AdamW(groups, lr=self.peak, betas=(first, second), eps=train.get("epsilon", 1e-8), fused=True)
        self._rows = RowUpdates(self.adamw)

    def _factor(self, step: int) -> float:
        return multiplier(self._schedule, step, self._steps, self._warmup, self._final_share)

    def learning_rate(self, step: int) -> float:
        """Return the encoder's learning rate at a step (from 0)."""
        return self.peak * self._factor(step)

    def step(
        self,
        step: int,
        scaler: Any = None,
        loss: Tensor | None = None,
        read: Read | None = None,
        before_update: Callable[[Tensor], None] = lambda norm: None,
    ) -> Tensor:
        """Clip, update, and clear the gradients; nothing waits for a GPU, which itself leaves out an update that is not finite.

        Args:
            step: optimiser step, from 0.
            scaler: a gradient scaler for fp16, or None; it skips a step whose gradients overflowed.
            loss: where it is not finite, nothing is updated.
            read: see `RowUpdates.take`.
            before_update: given the norm while the update is still to come, so that who waits for it does not wait for the update.

        Returns:
            The gradient's norm before clipping (of all parameters without a clip of their own), float32; NaN where any norm, or the loss,
            is not finite: then nothing is updated.
        """
        factor = self._factor(step)
        for group in self.adamw.param_groups:
            group["lr"] = group["peak"] * factor
        if scaler is not None:
            scaler.unscale_(self.adamw)
        rows = self._rows.take(read)
        norms = torch.stack([self._clip(parameters, rows, clip) for clip, parameters in self._clips])
        finite = norms.isfinite().all() if loss is None else norms.isfinite().all() & loss.isfinite()
        norm = torch.where(finite, norms[0], nan)
        before_update(norm)
        self._update(rows, (~finite).float(), scaler)
        self.clear()
        return norm

    def _update(self, rows: Sequence[RowGradient], left_out: Tensor, scaler: Any) -> None:
        """Update all parameters, unless `left_out` is 1; fp16's scaler leaves out what it finds itself."""
        if left_out.device.type == APPLE and bool(left_out):  # whose AdamW has no such argument
            return
        for part in rows:
            self._rows.step(part, left_out)
        if scaler is not None:
            scaler.step(self.adamw)
            scaler.update()
            return
        self.adamw.found_inf = left_out  # type: ignore[attr-defined]
        try:
            self.adamw.step()
        finally:
            del self.adamw.found_inf  # type: ignore[attr-defined]

    @staticmethod
    def _clip(parameters: Sequence[Tensor], rows: Sequence[RowGradient], bound: float | None) -> Tensor:
        """Scale the gradients down to the bound, and return the norm that they had."""
        own = {id(parameter) for parameter in parameters}
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        gradients += [part.values for part in rows if id(part.parameter) in own]
        if not gradients:
            return torch.zeros((), device=parameters[0].device if parameters else None)
        norm = nn.utils.get_total_norm(gradients)
        if bound is not None:
            length = wide(norm) + 1e-6
            torch._foreach_mul_(gradients, torch.where(length > bound, bound / length, 1.0).float())
        return norm

    def clear(self) -> None:
        """Drop the gradients."""
        self.adamw.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Return AdamW's tensors by `<parameter number>.<name>`."""
        state = self.adamw.state
        return {f"{i}.{name}": value for i, p in enumerate(self._parameters) for name, value in state.get(p, {}).items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over the tensors of `state`."""
        self.adamw.state.clear()
        for key, value in tensors.items():
            number, _, name = key.partition(".")
            parameter = self._parameters[int(number)]
            self.adamw.state[parameter][name] = value.to(parameter.device)
        self._rows.forget()
