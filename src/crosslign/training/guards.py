"""Guards of a run: numbers that are not finite, one prediction for everything, vectors that fall together, an empty first rank.

Each guard has an action: `fail` ends the run with an error and no system; `stop` ends training there and keeps the system, which
is marked as collapsed; `mark` trains on and marks it; `off` does not check (whether numbers are finite is always checked). A
mark says what is so when a checkpoint is written: a run that recovers loses it, except where an update was not finite. Score
records of a marked checkpoint carry the mark.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import normalize

from crosslign.devices import wide
from crosslign.errors import CrosslignError

GUARDS: Final = ("not_finite", "constant_prediction", "embedding_collapse", "rank_1_empty")
DEFAULTS: Final[Mapping[str, Any]] = {
    "not_finite": "fail",
    "constant_prediction": "mark",
    "embedding_collapse": "mark",
    "rank_1_empty": "mark",
    "left_out": 20,
    "every": 10,
    "patience": 5,
    "after": 100,
    "cosine": 0.98,
    "rank": 1.1,
    "rank_1_share": 0.95,
    "rank_1_steps": 500,
}
SAMPLE = 256
"""Vectors of an input that a check takes."""

log = logging.getLogger(__name__)


def spread(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean cosine of all pairs of vectors [n ≥ 2, d], and their Gram matrix over n, all of unit length, as float64."""
    unit = normalize(wide(vectors[:SAMPLE].detach()), dim=1)
    n = len(unit)
    return (unit.sum(0).square().sum() - n) / (n * (n - 1)), unit @ unit.T / n


def closeness(cosine: Tensor, gram: Tensor) -> tuple[float, float]:
    """Return the mean cosine and the effective rank of vectors, of what `spread` gives for them, on the CPU.

    The effective rank is exp of the entropy of the eigenvalues of the vectors' Gram matrix, all of unit length and not centred
    (Roy and Vetterli, 2007): 1 where all vectors are one, n where all are orthogonal.
    """
    shares = torch.linalg.eigvalsh(gram).clamp(min=1e-15)
    return float(cosine), float((-(shares * shares.log()).sum()).exp())


@dataclass
class Guards:
    """The guards of one run.

    Args:
        settings: of `train: guards`; missing keys have the values of `DEFAULTS`. `left_out`: updates in a row that are not
            finite at which training ends under `mark`, too. `every`: steps between checks; `after`: steps
            before the first; `patience`: checks in a row that must be bad; `cosine` and `rank`: vectors have collapsed where
            their mean cosine is above, or their effective rank below. `rank_1_share` and `rank_1_steps`: the encoder's loss of
            EMMA-X is noise where more than that share of the anchors has no candidate of rank 1 for so many steps.

    Attributes:
        bad: checks in a row that were bad, by guard.
        events: guard, `from` and `to` (steps; None while it lasts) and reason of everything that was marked.
        stopped: why training must end, or empty.
    """

    settings: Mapping[str, Any]
    bad: dict[str, int] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = ""

    def __post_init__(self) -> None:
        """Fill in the defaults."""
        self.settings = {**DEFAULTS, **self.settings}

    def due(self, done: int) -> bool:
        """Tell whether the step that made `done` steps is one to check."""
        watched = any(self.settings[guard] != "off" for guard in GUARDS[1:])
        return watched and done >= self.settings["after"] and done % self.settings["every"] == 0

    def wanted(self, done: int, vectors: Sequence[Tensor]) -> list[Tensor]:
        """Return what `check` is to be told of a batch, of the vectors [n, d] of each input; nothing where no check is due."""
        return [one for v in vectors if len(v) > 1 for one in spread(v)] if self.due(done) else []

    def check(self, done: int, told: Sequence[Tensor], terms: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """Check a batch, when that is due.

        Args:
            done: steps done.
            told: what `wanted` gave, on the CPU.
            terms: what each term logged; `constant` of one that predicts is 1 where all rows of the batch, although of different
                labels, got one prediction, `without_rank_1` of one that ranks the share of anchors without rank 1.

        Returns:
            What was seen, for the curve; empty where no check was due.

        Raises:
            CrosslignError: a guard whose action is `fail`.
        """
        if not self.due(done):
            return {}
        seen = [closeness(*pair) for pair in zip(told[::2], told[1::2], strict=True)]
        found: dict[str, float] = {}
        if seen and self.settings["embedding_collapse"] != "off":
            found = {"mean_cosine": max(cosine for cosine, _ in seen), "effective_rank": min(rank for _, rank in seen)}
            collapsed = found["mean_cosine"] > self.settings["cosine"] or found["effective_rank"] < self.settings["rank"]
            why = f"mean cosine {found['mean_cosine']:.4f}, effective rank {found['effective_rank']:.2f}"
            self._note("embedding_collapse", done, collapsed, f"embeddings have collapsed: {why}")
        for name, logged in terms.items():
            if "constant" in logged and self.settings["constant_prediction"] != "off":
                self._note(f"constant_prediction {name}", done, logged["constant"] == 1.0, f"{name} gives one prediction for all rows")
            if "without_rank_1" in logged and self.settings["rank_1_empty"] != "off":
                self._rank_1(name, done, logged["without_rank_1"])
        return found

    def _rank_1(self, name: str, done: int, empty: float) -> None:
        checks = self.settings["rank_1_steps"] // self.settings["every"] + 1
        reason = f"{name} finds no candidate of rank 1 for {empty:.1%} of the anchors"
        self._note(f"rank_1_empty {name}", done, empty > self.settings["rank_1_share"], reason, checks)

    def _note(self, guard: str, done: int, bad: bool, reason: str, patience: int | None = None) -> None:
        patience = patience or self.settings["patience"]
        self.bad[guard] = self.bad.get(guard, 0) + 1 if bad else 0
        lasting = next((event for event in self.events if event["guard"] == guard and event["to"] is None), None)
        if lasting is not None and not bad:
            lasting["to"] = done
        if self.bad[guard] >= patience and lasting is None:
            first = done - (patience - 1) * self.settings["every"]
            self._act(guard, first, done, reason)

    def _act(self, guard: str, first: int, done: int, reason: str) -> None:
        action = self.settings[guard.split(maxsplit=1)[0]]
        if action == "fail":
            raise CrosslignError(
                reason,
                where=f"step {done}",
                why=f"it began at step {first}",
                do=f"Lower the learning rate, or set train: guards: {guard.split(maxsplit=1)[0]} to mark to keep such a run",
            )
        log.warning("step %d: %s, since step %d%s", done, reason, first, ": training ends" if action == "stop" else "")
        self.events.append({"guard": guard, "from": first, "to": None, "reason": reason})
        if action == "stop":
            self.stopped = reason

    def not_finite(self, done: int, error: CrosslignError | None) -> None:
        """Take note of a step whose loss or gradient was not finite and whose update was left out; None where it was finite.

        Raises:
            CrosslignError: the given one, where such a run is to fail.
        """
        if error is None:
            self.bad.pop("not_finite", None)
            return
        action, self.bad["not_finite"] = self.settings["not_finite"], self.bad.get("not_finite", 0) + 1
        if action == "fail":
            raise error
        action = "stop" if self.bad["not_finite"] >= self.settings["left_out"] else action
        reason = f"step {done}: {error.what}, its update was left out"
        log.warning("%s%s", reason, ": training ends" if action == "stop" else "")
        if not any(event["guard"] == "not_finite" for event in self.events):
            self.events.append({"guard": "not_finite", "from": done, "to": None, "reason": reason})
        if action == "stop":
            self.stopped = reason

    def mark(self, step: int | None = None) -> str:
        """Return why the model after a step (by default: now) counts as collapsed; empty where it does not."""
        for event in self.events:
            began = step is None or event["from"] <= step
            lasted = event["to"] is None or (step is not None and step < event["to"])
            if began and lasted:
                return f"{event['reason']} (since step {event['from']})"
        return ""

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs."""
        return {"bad": self.bad, "events": self.events, "stopped": self.stopped}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.bad, self.events, self.stopped = dict(state["bad"]), list(state["events"]), str(state["stopped"])
