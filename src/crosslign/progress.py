"""Work done, its speed, and the time that is left, in the log."""

from __future__ import annotations

import logging
import threading
import time

from crosslign.console import duration

FIRST_SECONDS, MOST_SECONDS = 20.0, 300.0
"""Lines of progress are as far apart as the work is old, within these bounds."""
ONLY_IN_FILE = {"only_in_file": True}
"""`extra=` of a message that a job's log has and the screen is spared."""

log = logging.getLogger(__name__)


class Pace:
    """Says when the next line of progress is due: work that takes long says so at ever longer intervals, up to five minutes."""

    def __init__(self) -> None:
        self.start = self._last = time.monotonic()

    def due(self, now: float) -> bool:
        """Tell whether a line is due at `now`, and take note that it is written."""
        if now - self._last < min(max(self._last - self.start, FIRST_SECONDS), MOST_SECONDS):
            return False
        self._last = now
        return True


class Progress:
    """Counts what is done; several threads may share one.

    Args:
        total: how much there is to do.
        done: what is done to it, such as `searched`.
        what: what is counted, such as `rows`.
    """

    def __init__(self, total: int, done: str, what: str) -> None:
        self.total, self.done, self._skipped = total, 0, 0
        self._verb, self._what = done, what
        self._pace = Pace()
        self._lock = threading.Lock()

    def skip(self, number: int) -> None:
        """Count what an earlier run has done, and start the clock: neither it nor what went before says anything of the speed."""
        with self._lock:
            self._pace = Pace()
            self.done += number
            self._skipped += number
        if number:
            log.info("continuing after %d %s that were %s before", number, self._what, self._verb)

    def add(self, number: int) -> None:
        """Count what was done, and log now and then."""
        with self._lock:
            self.done += number
            now = time.monotonic()
            if not self._pace.due(now):
                return
            speed = (self.done - self._skipped) / (now - self._pace.start)
            left = duration((self.total - self.done) / speed)
        log.info("%s %d of %d %s, %.0f/s, %s left", self._verb, self.done, self.total, self._what, speed, left)
