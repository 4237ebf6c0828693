"""Simulated runs, as plans and the benchmarks of clusters count with them, against makespans worked out by hand."""

import pytest

from crosslign.planning.simulation import Task, longest_path, simulate

FOUR = {
    "data": Task(10),
    "a": Task(30, gpus=1, after=frozenset({"data"})),
    "b": Task(20, gpus=1, after=frozenset({"data"})),
    "c": Task(20, gpus=1, after=frozenset({"data"}), priority=5),
    "table": Task(5, after=frozenset({"a", "b", "c"})),
}


@pytest.mark.parametrize(("gpus", "seconds"), [(1, 10 + 70 + 5), (2, 10 + 40 + 5), (3, 10 + 30 + 5)])
def test_devices_bound_what_runs_at_once(gpus, seconds):
    # with two devices: c and a at 10, b at 30 when c ends, until 50
    assert simulate(FOUR, gpus, cores=8, jobs=100) == seconds


def test_the_longest_chain_bounds_every_run():
    assert longest_path(FOUR) == ["data", "a", "table"]
    assert longest_path({}) == []
    assert simulate(FOUR, 64, cores=8, jobs=100) == 45


def test_cores_the_queue_and_starting_cost_time():
    assert simulate(FOUR, 3, cores=1, jobs=100) == 85
    assert simulate(FOUR, 3, cores=8, jobs=1) == 85
    assert simulate(FOUR, 3, cores=8, jobs=100, start_seconds=1) == 48
