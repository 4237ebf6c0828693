"""AdamW over the model and its parts, each part with its own learning rate and clip where the recipe gives one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn

from crosslign.encoders.model import Model
from crosslign.objectives.contract import Part
from crosslign.training.row_updates import Rows, RowUpdates
from crosslign.training.schedule import multiplier, warmup_of


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
    """AdamW, its schedule and gradient clipping (PROTOCOLS A.1.6).

    Args:
        recipe: `train` (learning_rate, schedule, final_share, warmup_steps or warmup_share, weight_decay, decayed, clip, betas,
            epsilon) and `parts`, of which
            each may carry its own learning_rate and clip.
        model: the encoder.
        parts: named state of the terms.
        steps: steps of the run.
    """

    def __init__(self, recipe: Mapping[str, Any], model: Model, parts: Mapping[str, Part], steps: int) -> None:
        train = recipe["train"]
        self._schedule, self._warmup, self._steps = train["schedule"], warmup_of(train, steps), steps
        self._final_share: float = train.get("final_share", 0.0)
        self.peak: float = train["learning_rate"]
        decay, decayed = train.get("weight_decay", 0.0), train.get("decayed", "matrices")
        groups = _groups(model, self.peak, decay, decayed)
        self._clips: list[tuple[float | None, list[Tensor]]] = [(train.get("clip"), [p for g in groups for p in g["params"]])]
        for name, part in parts.items():
            options = recipe["parts"].get(name, {})
            own = _groups(part, options.get("learning_rate", self.peak), decay, decayed)
            groups += own
            parameters = [p for group in own for p in group["params"]]
            if "clip" in options:
                self._clips.append((options["clip"], parameters))
            else:
                self._clips[0][1].extend(parameters)
        self._parameters = [p for group in groups for p in group["params"]]
        betas = tuple(train.get("betas", (0.9, 0.999)))
        self.adamw = torch.optim.AdamW(groups, lr=self.peak, betas=betas, eps=train.get("epsilon", 1e-8), fused=True)
        self._rows = RowUpdates(self.adamw)

    def _factor(self, step: int) -> float:
        return multiplier(self._schedule, step, self._steps, self._warmup, self._final_share)

    def learning_rate(self, step: int) -> float:
        """Return the encoder's learning rate at a step (from 0)."""
        return self.peak * self._factor(step)

    def step(self, step: int, scaler: Any = None) -> float:
        """Clip, update, and clear the gradients.

        Args:
            step: optimiser step, from 0.
            scaler: a gradient scaler for fp16, or None; it skips a step whose gradients overflowed.

        Returns:
            The gradient's norm before clipping (of all parameters without a clip of their own); when it is not finite
            and there is no scaler, nothing is updated.
        """
        factor = self._factor(step)
        for group in self.adamw.param_groups:
            group["lr"] = group["peak"] * factor
        if scaler is not None:
            scaler.unscale_(self.adamw)
        rows = self._rows.take()
        norms = [self._clip(parameters, rows, clip) for clip, parameters in self._clips]
        finite = all(isfinite(norm) for norm in norms)
        if finite:  # before all others: it asks the GPU which rows, and what comes last goes on there while the next batch is made
            for part in rows:
                self._rows.step(part)
        if scaler is not None:
            scaler.step(self.adamw)
            scaler.update()
        elif finite:
            self.adamw.step()
        self.clear()
        return norms[0] if finite else float("nan")

    @staticmethod
    def _clip(parameters: Sequence[Tensor], rows: Sequence[Rows], bound: float | None) -> float:
        """Scale the gradients down to the bound, and return the norm that they had."""
        own = {id(parameter) for parameter in parameters}
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        gradients += [part.values for part in rows if id(part.parameter) in own]
        norm = float(nn.utils.get_total_norm(gradients))
        if bound is not None and isfinite(norm) and norm + 1e-6 > bound:
            torch._foreach_mul_(gradients, bound / (norm + 1e-6))
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
