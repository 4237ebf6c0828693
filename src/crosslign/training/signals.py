"""Signals to stop: training finishes its step, several processes the next one, too, and saves its state; a dev evaluation is abandoned."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from crosslign.workers import STOPPING

log = logging.getLogger(__name__)


class GivenUpError(Exception):
    """What was being done was given up, since the process was asked to stop."""


class StopFlag:
    """Whether, and by which signal, the run was asked to stop."""

    def __init__(self) -> None:
        self.signal: str | None = None
        self._at_once = False

    def __bool__(self) -> bool:
        return self.signal is not None

    def raise_by(self, number: int, frame: FrameType | None) -> None:
        """Take note of a signal (a handler)."""
        self.signal = signal.Signals(number).name
        log.warning("%s received: stopping after this step, or after the next where several processes train", self.signal)
        if self._at_once:
            self._at_once = False  # one is enough, and a second would hit what the first sets in motion
            raise GivenUpError

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a signal end the block, which must change nothing, by `GivenUpError`; so does one that came before."""
        if self:
            raise GivenUpError
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False


@contextmanager
def stop_requests() -> Iterator[StopFlag]:
    """Turn SIGTERM and SIGUSR1 into a flag while the block runs; only the main thread of a process can."""
    flag = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    before = {number: signal.signal(number, flag.raise_by) for number in STOPPING}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
