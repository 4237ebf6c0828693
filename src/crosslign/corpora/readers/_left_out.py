"""What readers leave out as the catalog says, counted by reason for the lineage of the corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SKIPPED = "skipped"
"""A value that the catalog names under `skip`."""
EMPTY = "empty"
"""No text on a side (`skip_empty`)."""
BROKEN = "broken"
"""Another number of columns, no label, or bytes that are not text (`skip_broken`)."""
INCOMPLETE = "without a language"
"""A unit of a translation memory that lacks one of the two languages."""

_COUNTS: ContextVar[Counter[str] | None] = ContextVar("left_out", default=None)


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count, by reason, the records that readers leave out within the `with` block."""
    counts = Counter[str]()
    token = _COUNTS.set(counts)
    try:
        yield counts
    finally:
        _COUNTS.reset(token)


def leave_out(reason: str, records: int = 1) -> None:
    """Count records of a file that become no row."""
    counts = _COUNTS.get()
    if counts is not None and records:
        counts[reason] += records
