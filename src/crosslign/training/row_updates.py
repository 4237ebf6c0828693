"""AdamW for tables of embeddings: only rows that were ever used are touched, with the bytes that AdamW over all rows would give.

A row without any gradient so far has moments of zero, and AdamW without weight decay leaves it as it is. A batch uses some thousand
rows of a quarter of a million, so most of the time and memory traffic of the update is saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

WORTH = {"cpu": 0.5, "cuda": 0.37}
"""Share of a table's rows up to which touching these alone takes less time than AdamW over all, by kind of device."""


@dataclass
class Rows:
    """A gradient of some rows of a table.

    Attributes:
        parameter: the table, [n, d].
        group: its options in AdamW.
        places: int64 [r], rising row numbers.
        values: [r, d], their gradient.
    """

    parameter: Tensor
    group: dict[str, Any]
    places: Tensor
    values: Tensor


class RowUpdates:
    """Takes sparse gradients out of AdamW's hands.

    Args:
        adamw: the optimiser; its state keeps the moments, as dense tensors.
    """

    def __init__(self, adamw: torch.optim.AdamW) -> None:
        self._adamw = adamw
        self._used: dict[Tensor, Tensor] = {}

    def forget(self) -> None:
        """Look at the moments anew: after a state was loaded."""
        self._used.clear()

    def _used_rows(self, table: Tensor) -> Tensor:
        """Return bool [n]: rows whose moments are not zero."""
        if table not in self._used:
            state = self._adamw.state.get(table, {})
            moments = [state[name] for name in ("exp_avg", "exp_avg_sq") if name in state]
            used = torch.zeros(len(table), dtype=torch.bool, device=table.device)
            for moment in moments:
                used |= (moment != 0).any(1)
            self._used[table] = used
        return self._used[table]

    def take(self) -> list[Rows]:
        """Return the sparse gradients, taken from their parameters; those that must be dense, or nearly are, become it."""
        taken = []
        for group in self._adamw.param_groups:
            for table in group["params"]:
                if table.grad is None or not table.grad.is_sparse:
                    continue
                gradient = table.grad.coalesce()
                places, used = gradient.indices()[0], self._used_rows(table)
                used[places] = True
                if group["weight_decay"] or int(used.sum()) > WORTH[table.device.type] * len(table):
                    table.grad = gradient.to_dense()
                    continue
                table.grad = None
                taken.append(Rows(table, group, places, gradient.values()))
        return taken

    @torch.no_grad()
    def step(self, rows: Rows) -> None:
        """Update the rows that were ever used."""
        table, group, state = rows.parameter, rows.group, self._adamw.state[rows.parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=table.device)  # where AdamW, fused, has it
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(table), torch.zeros_like(table)
        used = self._used_rows(table).nonzero().squeeze(1)
        gradient = table.new_zeros(len(used), table.shape[1])
        gradient.index_copy_(0, torch.searchsorted(used, rows.places), rows.values)
        whole = [table, state["exp_avg"], state["exp_avg_sq"]]
        parts = [tensor.index_select(0, used) for tensor in whole]
        state["step"] += 1
        torch._fused_adamw_(
            [parts[0]], [gradient], [parts[1]], [parts[2]], [], [state["step"]],
            amsgrad=False, lr=group["lr"], beta1=group["betas"][0], beta2=group["betas"][1], weight_decay=0.0, eps=group["eps"],
            maximize=False,
        )  # fmt: skip
        for tensor, part in zip(whole, parts, strict=True):
            tensor.index_copy_(0, used, part)
