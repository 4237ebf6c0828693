"""What goes wrong with the requests that stand-ins of publishers answer: each kind has its turn, and none without being asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crosslign.corpora import loopback
from crosslign.corpora.loopback import FAULTS, Publishers


@pytest.fixture
def faults(monkeypatch) -> Callable:
    monkeypatch.setattr(loopback, "OUTAGE_S", 0.0)

    def drawn(requests: int, share: float, seed: int, limits: int) -> dict[str, int]:
        server = Publishers({}, share, seed, frozenset(f"/{number}" for number in range(limits)))
        for number in range(requests):
            server.fault(f"/{number}")
        server.server_close()
        return dict(server.faults)

    return drawn


@pytest.mark.parametrize("seed", range(20))
def test_each_kind_has_its_turn(faults, seed):
    found = faults(60, 0.3, seed, limits=1)
    assert set(found) == set(FAULTS)
    assert found.pop("403") == 1
    assert max(found.values()) - min(found.values()) <= 1


def test_who_has_no_limit_turns_nobody_away_and_no_share_is_no_fault(faults):
    assert set(faults(60, 0.5, 1, limits=0)) == set(FAULTS) - {"403"}
    assert faults(60, 0.0, 1, limits=9) == {}
