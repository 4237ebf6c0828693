"""A terminal that goes away, as when ssh drops: SIGHUP ends a run as SIGTERM does, in order, so that its lock is given back."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

PRINTED_TO = (1, 2)
"""Descriptors: standard output and errors."""


def end_on_hangup() -> None:
    """Treat SIGHUP as SIGTERM from now on; a process that ignores it, as under nohup, goes on to.

    Only the main thread of a process can say so; from others this does nothing.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _end)


def _end(number: int, frame: FrameType | None) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in PRINTED_TO:
        try:
            os.write(descriptor, b"")
        except OSError:  # a word to a terminal that is gone is an error, in the midst of what must still be done
            os.dup2(nowhere, descriptor)
    os.close(nowhere)
    os.kill(os.getpid(), signal.SIGTERM)
