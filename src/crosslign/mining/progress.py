"""Rows searched, and the time that is left, in the log."""

from __future__ import annotations

import logging
import threading
import time

from crosslign.durations import duration

PROGRESS_SECONDS = 5.0

log = logging.getLogger(__name__)


class Progress:
    """Counts rows; several threads may share one.

    Args:
        total: rows to be searched.
    """

    def __init__(self, total: int) -> None:
        self.total, self.done, self._skipped = total, 0, 0
        self._start = self._last = time.monotonic()
        self._lock = threading.Lock()

    def skip(self, rows: int) -> None:
        """Count rows that an earlier run has done; they say nothing of the speed."""
        if rows:
            with self._lock:
                self.done += rows
                self._skipped += rows
            log.info("going on behind %d rows that were searched before", rows)

    def add(self, rows: int) -> None:
        """Count rows, and log every few seconds."""
        with self._lock:
            self.done += rows
            now = time.monotonic()
            if now - self._last < PROGRESS_SECONDS:
                return
            self._last = now
            left = (self.total - self.done) * (now - self._start) / (self.done - self._skipped)
        log.info("searched %d of %d rows, %s left", self.done, self.total, duration(left))
