"""When the state of a training is saved, by steps or minutes; it changes no bytes of the result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from crosslign.config.entry_keys import CHECKPOINT_MINUTES


class Pace:
    """Tells when a checkpoint is due: some time after the last one, and after every so many steps where a recipe says so.

    Time goes first, since a checkpoint takes as long to write however short a step is; it runs from the last one that this process wrote.

    Args:
        train: of the recipe, its `checkpoint_minutes` and `checkpoint_every` (none, or 0, for no such bound).
    """

    def __init__(self, train: Mapping[str, Any]) -> None:
        self._seconds = 60.0 * float(train.get("checkpoint_minutes") or CHECKPOINT_MINUTES)
        self._every = int(train.get("checkpoint_every") or 0)
        self.saved()

    def saved(self) -> None:
        """Take note that a checkpoint has been written."""
        self._last = time.monotonic()

    def by_time(self) -> bool:
        """Tell whether the last checkpoint is long enough ago, by the clock of this process."""
        return time.monotonic() - self._last >= self._seconds

    def by_steps(self, done: int) -> bool:
        """Tell whether one is due after so many steps."""
        return self._every > 0 and done % self._every == 0
