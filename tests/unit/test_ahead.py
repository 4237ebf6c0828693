"""Items that a thread makes one ahead."""

from __future__ import annotations

import threading

import pytest

from crosslign.ahead import one_ahead


def test_the_next_item_is_made_while_the_present_one_is_used_and_no_more():
    made, threads, next_is_made = [], set(), threading.Semaphore(0)

    def items():
        for item in range(4):
            threads.add(threading.get_ident())
            made.append(item)
            next_is_made.release()
            yield item

    found = []
    for item in one_ahead(items()):
        if item == 0:
            assert all(next_is_made.acquire(timeout=20) for _ in range(2))
        assert len(made) <= item + 2
        found.append(item)
    assert found == made == [0, 1, 2, 3]
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_making_an_item_raises_comes_at_its_turn(error):
    def items():
        yield 0
        yield 1
        raise error

    ahead = one_ahead(items())
    assert [next(ahead), next(ahead)] == [0, 1]
    with pytest.raises(error):
        next(ahead)


def test_who_stops_early_leaves_no_thread_behind():
    before = set(threading.enumerate())
    items = one_ahead(iter(range(9)))
    assert next(items) == 0
    items.close()
    assert set(threading.enumerate()) == before
