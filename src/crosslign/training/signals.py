"""Signals to stop: training finishes its step and saves its state first; a dev evaluation under way is abandoned."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGTERM, signal.SIGUSR1)
PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: the signal that a process gets when its parent ends."""

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
        log.warning("%s received: stopping after this step", self.signal)
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


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent, the one of the given number, ends, however that happens; Linux alone can."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        os.kill(os.getpid(), signal.SIGKILL)
