"""The oracle of machines with nodes against schedules worked out by hand.

Jobs are rows (submit, run, units, demand of a unit[, requested time]), called A, B, C ... in that
order. Machines are lists of nodes, each with so much of each resource, cores first.
"""

from __future__ import annotations

from typing import Any

import pytest
from drawing import given, settings
from node_strategies import node_cases

from hpcgym.reference.jobs import Job, jobs_of, node_jobs_of
from hpcgym.reference.nodes import hold, order_of_nodes, room, simulate_nodes
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload

FOUR = [[1]] * 4
PAIR = [[2, 2], [2, 2]]  # cores, memory


def simulated(rows: list[tuple[Any, ...]], capacity: list[list[int]], **words: Any):
    jobs = []
    for submit, run, units, demand, *requested in rows:
        request = requested[0] if requested else run
        given = (submit, units * demand[0], run, request)
        jobs.append(Job(*given, units=units, demand=tuple(demand)))
    return simulate_nodes(jobs, capacity, **words)


def starts(rows: list[tuple[Any, ...]], capacity: list[list[int]], **words: Any) -> list[int]:
    return [job.start for job in simulated(rows, capacity, **words)]


def nodes(rows: list[tuple[Any, ...]], capacity: list[list[int]], **words: Any) -> list[Any]:
    return [dict(job.nodes) for job in simulated(rows, capacity, **words)]


# --- Units and nodes ---------------------------------------------------------------------------


def test_the_scarcest_resource_tells_how_many_units_a_node_holds():
    assert hold([16, 16_000, 2], (1, 4_000, 0)) == 4
    assert hold([16, 16_000, 2], (1, 0, 0)) == 16
    assert hold([16, 16_000, 2], (1, 1, 1)) == 2
    assert hold([16, 16_000, 0], (1, 1, 1)) == 0
    assert room([[3, 9], [5, 4]], (2, 3)) == 1 + 1


def test_orders_of_nodes():
    # shares of all there is, 8 cores and 4 GPUs: 2/8 + 2/4, 4/8, 2/8 + 2/4, 0
    free, total = [[2, 2], [4, 0], [2, 2], [0, 0]], [8, 4]
    assert order_of_nodes("first-fit", free, total) == [0, 1, 2, 3]
    assert order_of_nodes("best-fit", free, total) == [3, 1, 0, 2]
    assert order_of_nodes("worst-fit", free, total) == [0, 2, 1, 3]


def test_nodes_of_scarce_resources_come_by_turns() -> None:
    """Cores and memory are everywhere; GPUs, the third, and MICs, the fourth, are not."""
    capacity = [[8, 4, 2, 0], [8, 4, 0, 2], [8, 4, 0, 0], [8, 4, 2, 0], [8, 4, 2, 0], [8, 4, 1, 2]]
    assert order_of_nodes("balanced", capacity, [], capacity) == [2, 0, 3, 1, 4, 5]
    # the first has given its GPUs away, the fourth one of them
    free = [[4, 2, 0, 0], [8, 4, 0, 2], [8, 4, 0, 0], [8, 4, 1, 0], [8, 4, 2, 0], [8, 4, 1, 2]]
    assert order_of_nodes("balanced", free, [], capacity) == [0, 2, 3, 1, 4, 5]


def asking(units: int, demand: tuple[int, ...], requested: int = 1) -> Job:
    return Job(0, units * demand[0], 1, requested, units=units, demand=demand)


def test_nodes_by_the_value_of_what_is_left() -> None:
    """Of 12 cores one is taken, of 24 memory five; the others that wait ask for 10 and 30."""
    free, total = [[4, 4], [4, 2], [2, 4], [1, 9]], [12, 24]
    one, two = asking(1, (2, 1)), asking(2, (2, 1))
    waits = [asking(2, (1, 3), requested=4)]
    # worth 11 x 2 / 144 = 0.153 and 31 x 6 / 576 = 0.323: left are (2, 3), (2, 1), (0, 3)
    assert order_of_nodes("weighted", free, total, free, one, waits) == [1, 2, 0]
    # both units on the first nodes: left are (0, 2), (0, 0), (0, 3)
    assert order_of_nodes("weighted", free, total, free, two, waits) == [1, 0, 2]
    # nobody waits: worth 2 / 144 = 0.014 and 6 / 576 = 0.010
    assert order_of_nodes("weighted", free, total, free, one) == [2, 1, 0]
    assert order_of_nodes("weighted", [[2, 2]] * 3, [6, 6], [[2, 2]] * 3, one) == [0, 1, 2]


def test_kinds_of_nodes_by_turns_and_each_by_value() -> None:
    """Cores are everywhere; GPUs, the second, and MICs, the third, are not."""
    capacity = [[8, 2, 0], [8, 0, 2], [8, 0, 0], [8, 2, 0], [8, 2, 0], [8, 0, 0]]
    total, job = [48, 6, 2], asking(9, (2, 0, 0))
    assert order_of_nodes("hybrid", capacity, total, capacity, job) == [2, 5, 0, 3, 4, 1]
    # odd cores are left over: the first GPUs come last of their kind, as do those of few GPUs
    free = [[7, 1, 0], [1, 0, 2], [7, 0, 0], [8, 2, 0], [8, 1, 0], [8, 0, 0]]
    assert order_of_nodes("hybrid", free, total, capacity, job) == [5, 2, 4, 0, 3]
    assert order_of_nodes("balanced", free, total, capacity) == [2, 5, 0, 4, 3, 1]


def test_who_waits_says_what_is_worth_keeping() -> None:
    """A leaves the node of four cores to B, which waits beside it; by number it would not."""
    machine = [[4, 2], [2, 4]]
    rows = [(0, 9, 1, (1, 1)), (0, 9, 1, (3, 1))]
    # worth 31 / 36 and 11 / 36: on the first node (3, 1) would be left, on the other (1, 3)
    assert nodes(rows, machine, allocation="weighted") == [{1: 1}, {0: 1}]
    assert nodes(rows[:1], machine, allocation="weighted") == [{0: 1}]
    # who comes later was not known
    later = [rows[0], (1, *rows[1][1:])]
    assert nodes(later, machine, allocation="weighted") == [{0: 1}, {0: 1}]


def test_a_unit_needs_all_it_asks_for_on_one_node():
    # A and B leave one core free on each node: C, two cores together, waits for both ends of A
    rows = [(0, 5, 1, (1, 0)), (0, 9, 1, (2, 1)), (0, 4, 1, (1, 2)), (0, 2, 1, (2, 0))]
    assert starts(rows, PAIR) == [0, 0, 0, 5]
    assert nodes(rows, PAIR) == [{0: 1}, {1: 1}, {0: 1}, {0: 1}]


def test_memory_keeps_cores_idle():
    rows = [(0, 5, 2, (1, 2)), (0, 5, 1, (1, 1)), (0, 3, 1, (1, 0))]
    assert nodes(rows, PAIR) == [{0: 1, 1: 1}, {0: 1}, {0: 1}]
    assert starts(rows, PAIR) == [0, 5, 5]  # no backfilling: C waits behind B
    assert starts(rows, PAIR, backfill="easy") == [0, 5, 0]


def test_each_allocator_takes_another_node():
    # A takes 1 of 4, B 3 of 4 cores; then C takes one where least is left, or most, or the first
    machine = [[4], [4], [4]]
    rows = [(0, 9, 1, (1,)), (0, 9, 3, (1,)), (0, 2, 4, (1,)), (0, 9, 1, (2,)), (3, 1, 1, (1,))]
    assert nodes(rows, machine) == [{0: 1}, {0: 3}, {1: 4}, {2: 1}, {1: 1}]
    assert nodes(rows, machine, allocation="best-fit") == [{0: 1}, {0: 3}, {1: 4}, {2: 1}, {2: 1}]
    worst = nodes(rows, machine, allocation="worst-fit")
    # A on 0 (all alike), B on 1 (the first of two full ones), C on 2, D on 0, E on the empty 2
    assert worst == [{0: 1}, {1: 3}, {2: 4}, {0: 1}, {2: 1}]


def test_units_go_to_as_many_nodes_as_it_takes():
    machine = [[2, 1], [3, 9], [4, 2]]
    (job,) = simulated([(0, 5, 4, (1, 1))], machine)
    assert job.nodes == ((0, 1), (1, 3))
    (job,) = simulated([(0, 5, 4, (1, 1))], machine, allocation="worst-fit")
    assert job.nodes == ((1, 3), (2, 1))  # 3/9 + 9/12 is more than 4/9 + 2/12


# --- EASY ----------------------------------------------------------------------------------------


def test_the_head_waits_until_its_units_fit_together():
    # two nodes of 2 cores, A and B on one core of each: C needs 2 cores on one node
    machine = [[2], [2]]
    rows = [(0, 4, 1, (1,)), (0, 8, 1, (2,)), (0, 9, 1, (1,)), (1, 5, 1, (2,)), (2, 6, 1, (1,))]
    jobs = simulated(rows, machine, backfill="easy")
    assert [job.start for job in jobs] == [0, 0, 0, 8, 4]
    assert jobs[3].reserved_start == 8
    # E ends after 8, but on node 0, which is not the head's: it may start as soon as it fits
    assert [dict(job.nodes) for job in jobs][3:] == [{1: 1}, {0: 1}]


def test_slack_counts_units_of_the_head_not_cores():
    # A leaves a core on each of two nodes; at 5 the head's 3 units of 2 cores find 2 + 2 places:
    # one core on one node may be taken until later. C asks for one on each and waits, D may start.
    machine = [[4], [4]]
    begin = [(0, 5, 2, (3,)), (0, 5, 3, (2,))]
    jobs = simulated([*begin, (1, 9, 2, (1,)), (1, 9, 1, (1,))], machine, backfill="easy")
    assert [job.start for job in jobs] == [0, 5, 10, 1]
    assert [dict(job.nodes) for job in jobs[1:]] == [{0: 1, 1: 2}, {0: 2}, {0: 1}]
    # and then there is no slack left for another
    rows = [*begin, (1, 9, 1, (1,)), (2, 9, 1, (1,)), (2, 3, 1, (1,))]
    assert starts(rows, machine, backfill="easy") == [0, 5, 1, 5, 2]


def test_a_job_goes_round_the_nodes_that_the_head_needs():
    # node 0 has a GPU, which the head needs; C takes no core of it although it is the first
    machine = [[2, 1], [2, 0]]
    rows = [(0, 5, 1, (1, 1)), (0, 5, 1, (2, 1)), (1, 9, 1, (1, 0)), (1, 4, 1, (1, 0))]
    jobs = simulated(rows, machine, backfill="easy")
    assert [job.start for job in jobs] == [0, 5, 1, 1]
    assert [dict(job.nodes) for job in jobs] == [{0: 1}, {0: 1}, {1: 1}, {0: 1}]  # D ends by 5


def test_a_job_that_failed_may_fit_after_another_has_started():
    # A and B leave 1 and 2 cores; at 9 the head's 2 units of 2 cores find 1 + 2 places. C, of two
    # units of a core, would take the place on node 0 and so none on node 1, and waits. When D has
    # taken node 0 for a while, C takes both its units from one place of node 1.
    machine = [[2], [4]]
    rows = [(0, 9, 1, (1,)), (0, 9, 1, (2,)), (1, 5, 2, (2,)), (1, 99, 2, (1,))]
    assert starts(rows, machine, backfill="easy") == [0, 0, 9, 9]
    rows += [(2, 3, 1, (1,)), (3, 1, 1, (4,))]
    jobs = simulated(rows, machine, backfill="easy")
    assert [job.start for job in jobs] == [0, 0, 9, 3, 2, 102]
    assert [dict(job.nodes) for job in jobs[2:5]] == [{0: 1, 1: 1}, {1: 2}, {0: 1}]
    # where D is looked at before C, C starts at the same pass
    shortest_first = starts(rows, machine, backfill="easy", backfill_order="sjbf")
    assert shortest_first == [0, 0, 9, 2, 2, 101]


# --- Conservative --------------------------------------------------------------------------------


def test_a_reservation_is_of_nodes():
    # A on node 0 until 5, B on node 1 until 8, C wants both: D has node 0 from 5 to 8, E has not
    machine = [[2], [2]]
    rows = [(0, 5, 1, (2,)), (0, 8, 1, (2,)), (1, 9, 2, (2,)), (1, 3, 1, (2,)), (1, 4, 1, (2,))]
    jobs = simulated(rows, machine, backfill="conservative")
    assert [job.start for job in jobs] == [0, 0, 8, 5, 17]
    assert [job.reserved_start for job in jobs] == [0, 0, 8, 5, 17]
    assert [dict(job.nodes) for job in jobs] == [{0: 1}, {1: 1}, {0: 1, 1: 1}, {0: 1}, {0: 1}]


def test_units_stay_on_their_node_throughout():
    # a core is free at any time, on node 0 until 5 (B is reserved there) and on node 1 from 5 on
    machine = [[2], [2]]
    rows = [(0, 5, 1, (1,)), (0, 5, 1, (2,)), (0, 9, 1, (2,)), (1, 6, 1, (1,), 6)]
    jobs = simulated(rows, machine, backfill="conservative")
    assert [job.start for job in jobs] == [0, 0, 5, 5]
    assert [dict(job.nodes) for job in jobs] == [{0: 1}, {1: 1}, {0: 1}, {1: 1}]


def test_a_reservation_that_cannot_be_earlier_stays_on_its_nodes():
    # A (node 0, requested until 20) ends at 4; B and C hold nodes 1 and 2 until 10, reserved for D
    machine = [[2], [2], [2]]
    rows = [(0, 4, 1, (2,), 20), (0, 10, 1, (2,)), (0, 10, 1, (2,)), (1, 5, 2, (2,))]
    rows += [(2, 30, 1, (2,))]
    jobs = simulated(rows, machine, backfill="conservative")
    assert [job.reserved_start for job in jobs] == [0, 0, 0, 10, 15]
    assert [job.start for job in jobs] == [0, 0, 0, 10, 4]
    assert [dict(job.nodes) for job in jobs][3:] == [{1: 1, 2: 1}, {0: 1}]


def test_reservations_become_earlier_when_a_job_ends_early():
    machine = [[2], [2]]
    rows = [(0, 9, 1, (2,)), (0, 4, 1, (2,), 9), (1, 5, 1, (2,)), (1, 5, 1, (2,))]
    jobs = simulated(rows, machine, backfill="conservative")
    assert [job.reserved_start for job in jobs] == [0, 0, 9, 9]
    assert [job.start for job in jobs] == [0, 0, 4, 9]
    assert [dict(job.nodes) for job in jobs][2:] == [{1: 1}, {1: 1}]


def test_after_an_expired_prediction_all_are_planned_again():
    # A is to end at 5 but runs until 10, then thought to run until 20; D comes at 6
    machine = [[2]]
    rows = [(0, 10, 1, (2,), 20), (1, 4, 1, (2,)), (6, 4, 1, (1,))]
    words = {"backfill": "conservative", "estimate": [5, 4, 4]}
    jobs = simulated(rows, machine, **words)
    assert [job.reserved_start for job in jobs] == [0, 5, 24]
    assert [job.start for job in jobs] == [0, 10, 14]


def test_the_nodes_of_jobs_of_single_cores_are_chosen_when_they_start():
    machine = [[1], [1]]
    rows = [(0, 9, 1, (1,)), (0, 5, 1, (1,)), (1, 5, 1, (1,))]
    jobs = simulated(rows, machine, backfill="conservative")
    assert [dict(job.nodes) for job in jobs] == [{0: 1}, {1: 1}, {1: 1}]


# --- What is as without nodes --------------------------------------------------------------------


def test_a_job_is_killed_at_its_prediction_where_that_is_the_correction():
    rows = [(0, 9, 1, (1,)), (0, 5, 1, (1,))]
    jobs = simulated(rows, [[1]], estimate=[6, 20], correction="kill")
    assert [(job.end, job.killed) for job in jobs] == [(6, True), (11, False)]


def test_units_of_a_workload():
    columns = {
        "submit_time": [0, 1],
        "run_time": [5, 5],
        "requested_time": [9, 9],
        "requested_processors": [6, 4],
        "requested_memory": [1_500, -1],
    }
    plain = Workload.from_columns(columns, processors=8)
    jobs = node_jobs_of(plain, ("core", "gpu", "mem"))
    assert [(job.units, job.demand, job.processors) for job in jobs] == [
        (6, (1, 0, 2), 6),
        (4, (1, 0, 0), 4),
    ]
    per_unit = {"core": [3, 2], "gpu": [1, 0]}
    rich = Workload.from_columns(columns, processors=8, units=[2, 2], per_unit=per_unit)
    jobs = node_jobs_of(rich, ("core", "gpu", "mem"))
    assert [(job.units, job.demand) for job in jobs] == [(2, (3, 1, 0)), (2, (2, 0, 0))]


@settings(max_examples=150)
@given(node_cases())
def test_where_cores_are_all_that_counts_the_schedule_is_that_of_a_pool(case):
    cluster, workload, words = case
    pool_words = {**words, "passes": "per-timestamp"}
    del pool_words["allocation"]
    if words["correction"] == "kill":
        words["correction"] = pool_words["correction"] = "requested"
    if words["backfill"].startswith("slurm"):  # its reservations are of nodes by name
        words["backfill"] = pool_words["backfill"] = "depth:20"
    jobs = node_jobs_of(workload, cluster.resources)
    for job in jobs:
        job.units, job.demand = job.processors, (1,) + (0,) * (len(job.demand) - 1)
    on_nodes = simulate_nodes(jobs, cluster.capacity.tolist(), **words)
    in_a_pool = simulate_pool(jobs_of(workload), cluster.processors, **pool_words)
    for mine, other in zip(on_nodes, in_a_pool, strict=True):
        assert (mine.start, mine.reserved_start) == (other.start, other.reserved_start)
        assert (mine.backfilled, mine.predicted) == (other.backfilled, other.predicted)


@settings(max_examples=100)
@given(node_cases())
def test_what_is_promised_for_requested_times_is_kept(case):
    cluster, workload, words = case
    words |= {"estimate": "requested", "correction": "requested"}
    jobs = simulate_nodes(
        node_jobs_of(workload, cluster.resources), cluster.capacity.tolist(), **words
    )
    for job in jobs:
        assert job.start >= job.submit
        assert sum(units for _, units in job.nodes) == job.units
        if words["backfill"] == "conservative" or words["policy"] == "fcfs":
            assert job.reserved_start == -1 or job.start <= job.reserved_start


def test_the_given_jobs_are_not_touched():
    given_job = Job(0, 2, 10, 10, units=2, demand=(1,))
    simulate_nodes([given_job], [[2]])
    assert vars(given_job) == vars(Job(0, 2, 10, 10, units=2, demand=(1,)))


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_an_empty_workload(backfill: str):
    assert simulate_nodes([], FOUR, backfill=backfill) == []
