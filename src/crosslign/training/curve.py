"""The learning curve, one JSON object a step, and the progress in the log."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from statistics import median
from typing import IO, Any

from crosslign.console import duration, number_of
from crosslign.progress import ONLY_IN_FILE, Pace

log = logging.getLogger(__name__)


def finite(value: Any) -> Any:
    """Return a value with every NaN and infinity in it as None, which JSON has a word for."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value


def holds(path: Path, state: Mapping[str, Any]) -> bool:
    """Tell whether a curve begins with the bytes that a saved state recorded; states from before checksums recorded their number."""
    with open(path, "rb") as file:
        begins = file.read(state["curve_bytes"])
    found = hashlib.sha256(begins).hexdigest()
    return bool(len(begins) == state["curve_bytes"] and state.get("curve_sha256", found) == found)


class Curve:
    """`curve.jsonl`: no wall times, so that equal runs give equal bytes.

    Args:
        path: the file, in the working folder.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file: IO[bytes] = open(path, "r+b" if path.exists() else "w+b")  # noqa: SIM115
        self._digest = hashlib.sha256()

    def cut(self, keep: int) -> None:
        """Keep the first `keep` bytes; what a run wrote behind its checkpoint is cut off."""
        self._file.flush()
        self._file.truncate(keep)
        self._file.seek(0)
        self._digest = hashlib.sha256(self._file.read())

    def write(self, line: dict[str, Any]) -> None:
        """Append one step."""
        written = (json.dumps(finite(line), sort_keys=True, allow_nan=False) + "\n").encode()
        self._file.write(written)
        self._digest.update(written)

    def flush(self) -> dict[str, Any]:
        """Bring everything to the disk, and return how many bytes it has, and their SHA-256."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"curve_bytes": self._file.tell(), "curve_sha256": self._digest.hexdigest()}

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class StepProgress:
    """Step, loss, speed and the time that is left, now and then and at the end."""

    def __init__(self, done: int, steps: int) -> None:
        self._first, self._steps = done, steps
        self._pace = Pace()
        self._rows = self._texts = 0

    def add(self, done: int, rows: int, texts: int, loss: float, learning_rate: float) -> None:
        """Take note of one more step: its examples, the sentences that were encoded, its loss."""
        self._rows, self._texts = self._rows + rows, self._texts + texts
        now = time.monotonic()
        if not self._pace.due(now) and done < self._steps:
            return
        seconds = max(now - self._pace.start, 1e-9)
        speed = (done - self._first) / seconds
        log.info(
            "step %d of %d, loss %.4f, learning rate %.2e, %.2f steps/s, %.0f examples/s, %.0f sentences/s, %s left",
            done, self._steps, loss, learning_rate, speed, self._rows / seconds, self._texts / seconds,
            duration((self._steps - done) / speed),
        )  # fmt: skip


class Spikes:
    """Names the examples of a step whose loss stands far above those before it.

    A loss is a spike when it is above the median of the last 50 by ten times their median distance from it, and by half of the median.
    Examples are named by their ids; the ids of the corpus rows that they were made of stand beside them in the training set.
    """

    WINDOW, LEAST, FACTOR, SHARE, SAID = 50, 20, 10.0, 0.5, 20

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=self.WINDOW)
        self._said = 0

    def add(self, step: int, loss: float, ids: Sequence[str]) -> bool:
        """Take note of one more step; return whether it is a spike. At most 20 are named, in the job's log alone."""
        spike = False
        if len(self._losses) >= self.LEAST:
            middle = median(self._losses)
            spread = median(abs(other - middle) for other in self._losses)
            spike = loss - middle > max(self.FACTOR * spread, self.SHARE * abs(middle))
            if spike and self._said < self.SAID:
                self._said += 1
                told = number_of(len(ids), "example")
                log.warning(
                    "step %d: loss %.4f, median of the last %d %.4f; its %s: %s",
                    step, loss, len(self._losses), middle, told, " ".join(ids), extra=ONLY_IN_FILE,
                )  # fmt: skip
        self._losses.append(loss)
        return spike
