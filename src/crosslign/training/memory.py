"""Batches that do not fit into memory: what would fit, and a bound on the memory of a run on a CPU."""

from __future__ import annotations

import logging
import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from crosslign.console import number_of
from crosslign.errors import ResourceError

Sizes = Mapping[str, int]
"""Examples encoded at a time, by training set."""

log = logging.getLogger(__name__)


class TooLargeError(ResourceError):
    """A batch that does not fit into memory.

    Args:
        step: number of the step, from 1.
        sizes: examples that were encoded at a time.
        cause: what the allocator said.
        loss_of: rows of the loss, where that is what does not fit and no smaller micro-batch would make room for it; else 0.
    """

    def __init__(self, step: int, sizes: Sizes, cause: str, loss_of: int = 0) -> None:
        self.step, self.sizes, self.cause = step, dict(sizes), cause.splitlines()[0][:200] if cause else "the cause is unknown"
        self.loss_of = loss_of
        what = f"the loss of {number_of(loss_of, 'example')}" if loss_of else "the batch"
        super().__init__(
            f"{what} does not fit into memory", where=f"step {step}", why=f"number of examples encoded together: {dict(sizes)}"
        )


class HalvedError(ResourceError):
    """A batch that did not fit on one of several ranks, which all are to start again with the halves that are written down."""

    def __init__(self, error: TooLargeError) -> None:
        do = "Run the same command again: it continues from the saved state with half as many"
        super().__init__(error.what, where=error.where, why=f"{error.why}; {error.cause}", do=do)


def halved(sizes: Sizes) -> dict[str, int] | None:
    """Return half of every size, at least 1; None where all are 1 already."""
    return {name: max(1, size // 2) for name, size in sizes.items()} if any(size > 1 for size in sizes.values()) else None


def largest_that_fits(sizes: Sizes, fits: Callable[[Sizes], bool]) -> dict[str, int] | None:
    """Return the largest smaller micro-batches that were tried and fit, to an eighth; None where not even single examples do.

    Args:
        sizes: what does not fit.
        fits: tries such sizes.
    """
    share, largest = 1.0, max(sizes.values())
    lowest: float | None = None
    while lowest is None and share * largest >= 2:
        share /= 2
        if fits(_shared(sizes, share)):
            lowest = share
    if lowest is None:
        return None
    highest = 2 * lowest
    while (highest - lowest) * largest > max(1.0, lowest * largest / 8):
        middle = (lowest + highest) / 2
        lowest, highest = (middle, highest) if fits(_shared(sizes, middle)) else (lowest, middle)
    return _shared(sizes, lowest)


def _shared(sizes: Sizes, share: float) -> dict[str, int]:
    return {name: max(1, int(size * share)) for name, size in sizes.items()}


def does_not_fit(error: TooLargeError, sizes: Sizes | None, tried: bool = True) -> ResourceError:
    """Return the error that says what would fit.

    Args:
        error: what did not fit.
        sizes: micro-batches that do, or None where not even single examples do.
        tried: whether they are the largest that were tried; else, with several ranks, they are a guess.
    """
    if error.loss_of:
        do = "Lower batch, or the queue and the views of the loss, or ask for more memory; a smaller micro_batch does not help here"
    elif not sizes:
        do = "Even one example does not fit: lower max_length, use a smaller encoder, or ask for more memory"
    elif tried:
        do = (
            f"Set micro_batch of the terms to {dict(sizes)}, the largest tested size that fits (the loss stays that of the whole batch), "
            "or allow smaller ones with train: auto_micro_batch: true"
        )
    else:
        do = (
            f"Set micro_batch of the terms to {dict(sizes)} or less (the loss stays that of the whole batch), "
            "or allow smaller ones with train: auto_micro_batch: true; with several ranks the largest size that fits is not searched"
        )
    return ResourceError(error.what, where=error.where, why=f"{error.why}; {error.cause}", do=do)


def own_status(field: str) -> int:
    """Return a size in bytes from /proc/self/status; 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:")), 0)


@contextmanager
def bounded_memory(megabytes: int | None) -> Iterator[None]:
    """Let allocations fail, which a run can answer, where the process would grow beyond a budget and be killed.

    The bound (RLIMIT_DATA of Linux) is on what is written, not on files that are mapped; without /proc there is none.

    Args:
        megabytes: budget of the process in memory, or None for no bound.

    Raises:
        ResourceError: the process takes more already.
    """
    data, resident = own_status("VmData"), own_status("VmRSS")
    if megabytes is None or not data:
        yield
        return
    room = (megabytes << 20) - resident
    if room <= 0:
        raise ResourceError(
            "the memory budget is too small", where="train: memory_mb", why=f"{resident >> 20} MB are in use, {megabytes} are allowed"
        )
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (data + room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
