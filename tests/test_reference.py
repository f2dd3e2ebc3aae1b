"""Pieces of the reference, by hand: scores, room on nodes, and in which order these are filled.

Whole schedules by hand, of both engines, are in ``engine/test_rules_by_hand.py``.
"""

from __future__ import annotations

import math

import pytest
from few_jobs import few_jobs

from hpcgym.reference.jobs import Job, node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.reference.orders import f1, f2, f3, f4, unicef, weighted, wfp3
from hpcgym.reference.pool import simulate_pool
from hpcgym.reference.units import hold, order_of_nodes, room


def test_scores() -> None:
    job = Job(submit=10, processors=4, run=1, requested=100)
    assert f1(job, 0) == -(2 * 4 + 870)
    assert f2(job, 0) == -(10 * 4 + 25600)
    assert f3(job, 0) == -(100 * 4 + 6860000)
    assert f4(job, 0) == -(100 * 2 + 530000)
    assert wfp3(job, 60) == 0.5**3 * 4
    assert unicef(job, 60) == 50 / (2 * 100)
    assert weighted((1, 10, 100, 1000, 10000, 100000))(job, 60) == pytest.approx(
        4 + 1000 + 5000 + 25000 + 15000 + 40000000
    )
    at_zero = Job(submit=0, processors=1, run=1, requested=1)
    assert f1(at_zero, 5) == f2(at_zero, 5) + 1 == 0
    assert (unicef(at_zero, 0), unicef(at_zero, 1)) == (0, math.inf)


def test_the_scarcest_resource_tells_how_many_units_a_node_holds() -> None:
    assert hold([16, 16_000, 2], (1, 4_000, 0)) == 4
    assert hold([16, 16_000, 2], (1, 0, 0)) == 16
    assert hold([16, 16_000, 2], (1, 1, 1)) == 2
    assert hold([16, 16_000, 0], (1, 1, 1)) == 0
    assert room([[3, 9], [5, 4]], (2, 3)) == 1 + 1


def test_orders_of_nodes() -> None:
    # shares of all there is, 8 cores and 4 GPUs: 2/8 + 2/4, 4/8, 2/8 + 2/4, 0
    free, total = [[2, 2], [4, 0], [2, 2], [0, 0]], [8, 4]
    assert order_of_nodes("first-fit", free, total) == [0, 1, 2, 3]
    assert order_of_nodes("best-fit", free, total) == [3, 1, 0, 2]
    assert order_of_nodes("worst-fit", free, total) == [0, 2, 1, 3]
    # cores and memory are everywhere; GPUs, the third, and MICs, the fourth, are not
    capacity = [[8, 4, 2, 0], [8, 4, 0, 2], [8, 4, 0, 0], [8, 4, 2, 0], [8, 4, 2, 0], [8, 4, 1, 2]]
    assert order_of_nodes("balanced", capacity, [], capacity) == [2, 0, 3, 1, 4, 5]
    # the first has given its GPUs away, the fourth one of them
    free = [[4, 2, 0, 0], [8, 4, 0, 2], [8, 4, 0, 0], [8, 4, 1, 0], [8, 4, 2, 0], [8, 4, 1, 2]]
    assert order_of_nodes("balanced", free, [], capacity) == [0, 2, 3, 1, 4, 5]


def asking(units: int, demand: tuple[int, ...], requested: int = 1) -> Job:
    """Return a job that asks for units."""
    return Job(0, units * demand[0], 1, requested, units=units, demand=demand)


def test_nodes_by_the_value_of_what_is_left() -> None:
    """Of 12 cores one is taken, of 24 memory five; the others that wait ask for 10 and 30."""
    free, total = [[4, 4], [4, 2], [2, 4], [1, 9]], [12, 24]
    first, two = asking(1, (2, 1)), asking(2, (2, 1))
    waits = [asking(2, (1, 3), requested=4)]
    # worth 11 x 2 / 144 = 0.153 and 31 x 6 / 576 = 0.323: left are (2, 3), (2, 1), (0, 3)
    assert order_of_nodes("weighted", free, total, free, first, waits) == [1, 2, 0]
    # both units on the first nodes: left are (0, 2), (0, 0), (0, 3)
    assert order_of_nodes("weighted", free, total, free, two, waits) == [1, 0, 2]
    # nobody waits: worth 2 / 144 = 0.014 and 6 / 576 = 0.010
    assert order_of_nodes("weighted", free, total, free, first) == [2, 1, 0]
    assert order_of_nodes("weighted", [[2, 2]] * 3, [6, 6], [[2, 2]] * 3, first) == [0, 1, 2]


def test_kinds_of_nodes_by_turns_and_each_by_value() -> None:
    """Cores are everywhere; GPUs, the second, and MICs, the third, are not."""
    capacity = [[8, 2, 0], [8, 0, 2], [8, 0, 0], [8, 2, 0], [8, 2, 0], [8, 0, 0]]
    total, job = [48, 6, 2], asking(9, (2, 0, 0))
    assert order_of_nodes("hybrid", capacity, total, capacity, job) == [2, 5, 0, 3, 4, 1]
    # odd cores are left over: the first GPUs come last of their kind, as do those of few GPUs
    free = [[7, 1, 0], [1, 0, 2], [7, 0, 0], [8, 2, 0], [8, 1, 0], [8, 0, 0]]
    assert order_of_nodes("hybrid", free, total, capacity, job) == [5, 2, 4, 0, 3]
    assert order_of_nodes("balanced", free, total, capacity) == [2, 5, 0, 4, 3, 1]


def test_units_of_a_workload() -> None:
    jobs = few_jobs(8, [0, 1], [5, 5], [6, 4], requested_memory=[1_500, -1])
    jobs_on_nodes = node_jobs_of(jobs, ("core", "gpu", "mem"))
    assert [(job.units, job.demand) for job in jobs_on_nodes] == [(6, (1, 0, 2)), (4, (1, 0, 0))]
    per_unit = {"core": [3, 2], "gpu": [1, 0]}
    rich = few_jobs(8, [0, 1], [5, 5], [6, 4], units=[2, 2], per_unit=per_unit)
    jobs_on_nodes = node_jobs_of(rich, ("core", "gpu", "mem"))
    assert [(job.units, job.demand) for job in jobs_on_nodes] == [(2, (3, 1, 0)), (2, (2, 0, 0))]


def test_the_given_jobs_are_not_touched() -> None:
    given = [Job(0, 2, 10, 10, units=2)]
    simulate_pool(given, 2)
    simulate_nodes(given, [[2]])
    assert vars(given[0]) == vars(Job(0, 2, 10, 10, units=2))
