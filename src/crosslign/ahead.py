"""Prefetching: a thread makes the next items of an iterator while the caller works on one."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def one_ahead(items: Iterable[Item], thread: str = "") -> Generator[Item]:
    """Yield items; a thread makes the next one, and no more, while the caller works on the present one.

    What making an item raises is raised at its turn; a caller that stops early waits for the item that is being made.

    Args:
        items: those that are yielded.
        thread: what the thread's name begins with.
    """
    source = iter(items)

    def take() -> list[Item]:
        return list(islice(source, 1))

    with ThreadPoolExecutor(1, thread) as pool:
        following = pool.submit(take)
        while present := following.result():
            following = pool.submit(take)
            yield present[0]
