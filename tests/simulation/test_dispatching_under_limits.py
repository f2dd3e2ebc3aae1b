"""Dispatchers where jobs have nodes of their own: worked out by hand, and wrong answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcgym import Cluster, Workload, simulate, validate_schedule
from hpcgym.cluster import NodeGroup, NodePower
from hpcgym.schedule.result import Result
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.dispatchers.asking import DispatchError
from hpcgym.scheduler.limits import EnergyBudget, PowerCap

#: Idle 100 W, busy 150 W and 1.5 times as long, or 200 W; off 10 W.
POWER = NodePower(100, [150, 200], 10, [1, 2], 1.5)
SLEEPY = NodePower(100, 200, 10, shutdown_time_s=5, boot_time_s=20)


def machine(power: NodePower = POWER, cores: int = 1, **more: Any) -> Cluster:
    return Cluster(groups=(NodeGroup("node", 4, {"core": cores}, power),), **more)


def jobs(*rows: tuple[int, int, int]) -> Workload:
    """Jobs of (submit, processors, run time, which is requested)."""
    submit, processors, run = (list(column) for column in zip(*rows, strict=True))
    columns = {"submit_time": submit, "requested_processors": processors, "run_time": run}
    return Workload.from_columns(columns | {"requested_time": run}, processors=16, name="by hand")


#: Of 3, 2 and 1 nodes.
THREE = jobs((0, 3, 10), (0, 2, 5), (0, 1, 5))


def run(workload: Workload, dispatcher: Any, *limits: Any, **rules: Any) -> Result:
    """Simulate, and prove that the schedule is valid."""
    rules = {"cluster": machine(), **rules}
    result = simulate(workload, dispatcher, limits=limits, **rules)
    validate_schedule(result)
    return result


class Small:
    """Starts the narrowest first, and notes what it sees."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def __call__(self, view: PassView) -> list[int]:
        held = view.held_back.tolist()
        self.seen.append((view.time, view.job.tolist(), view.allowed.tolist(), held))
        return view.in_order(np.argsort(view.units, kind="stable"))


def test_a_cap_holds_back_what_is_named() -> None:
    """Idle, the machine draws 400 W; each node of a job adds 100 W."""
    small = Small()
    result = run(THREE, small, PowerCap(600, 0, 20))
    # at 0 s 3 nodes are too many alone; 1 and 2 fit, but not both: the second waits, until 5 s;
    # at 10 s nothing is allowed, so nobody is asked before the cap ends
    assert small.seen == [
        (0, [0, 1, 2], [False, True, True], [0, 0, 0]),
        (5, [0, 1], [False, True], [0, 1]),
        (20, [0], [True], [0]),
    ]
    assert result.start.tolist() == [20, 5, 0]
    assert result.end.tolist() == [30, 10, 5]
    assert result.dispatcher is small
    assert result.metrics["cap_exceeded_s"] == 0
    assert not result.backfilled.any()
    assert (result.reserved_start == -1).all()


def test_jobs_start_at_the_highest_frequency_that_is_allowed() -> None:
    result = run(THREE, Small(), PowerCap(600, 0, 20), power="dvfs")
    # 500 W with the first; 2 nodes more at 150 W; then 3 at 150 W are 550 W, at 200 W 700 W
    assert result.start.tolist() == [8, 0, 0]
    assert result.frequency is not None
    assert result.frequency.tolist() == [0, 0, 1]
    assert result.end.tolist() == [23, 8, 5]


def test_one_that_is_held_back_lets_nobody_pass_unless_the_dispatcher_does() -> None:
    """In the order of submission the first, of 2 nodes, waits for the one that runs."""
    workload = jobs((0, 1, 10), (1, 2, 5), (1, 1, 5))

    def first_come(view: PassView) -> list[int]:
        return view.in_order(range(len(view.job)))

    def passing(view: PassView) -> list[int]:
        return view.in_order(np.flatnonzero(view.allowed))

    cap = PowerCap(600)
    assert run(workload, first_come, cap).start.tolist() == [0, 10, 15]
    assert run(workload, passing, cap).start.tolist() == [0, 10, 1]


def test_a_unit_is_a_whole_node() -> None:
    """A job of 5 cores has 2 nodes of 4; the machine says which, whatever is named."""
    seen: list[PassView] = []

    def last(view: PassView) -> list[tuple[int, list[int]]]:
        seen.append(view)
        return [(0, [3, 2])] if view.time == 0 else [(0, [3])]

    result = run(jobs((0, 5, 9), (2, 1, 3)), last, cluster=machine(cores=4))
    assert result.allocation is not None
    assert [column.tolist() for column in result.allocation] == [[0, 2, 3], [0, 1, 2], [4, 1, 1]]
    second = seen[1]
    assert (second.units.tolist(), second.per_unit.tolist()) == ([1], [[4]])
    assert second.free[:, 0].tolist() == [0, 0, 4, 4]
    assert second.running_node.tolist() == [0, 1]
    assert second.running_units.tolist() == [1, 1]
    assert second.running_end.tolist() == [9]


def test_a_job_waits_for_nodes_that_are_switched_on() -> None:
    """Nodes are off for the cap, the first two of them; they boot from 100 s to 120 s."""
    seen: list[tuple[Any, ...]] = []

    def wide_first(view: PassView) -> list[int]:
        seen.append((view.time, view.job.tolist(), view.allowed.tolist()))
        return view.in_order(np.argsort(-view.units, kind="stable"))

    cap = PowerCap(430, 50, 100)
    workload = jobs((60, 4, 10), (60, 1, 10), (60, 1, 30))
    result = run(workload, wide_first, cap, cluster=machine(SLEEPY), power="shut")
    # what fits by nodes is named: the wide one alone, which waits; all boot when the cap is over,
    # and it is allowed then: it has its nodes at 100 s, and starts when they are on
    assert seen[0] == (60, [0, 1, 2], [False, True, True])
    assert result.start.tolist() == [120, 130, 130]
    assert [time for time, *_ in seen] == [60, 100, 130]


def test_a_budget_holds_back_too() -> None:
    """400 W idle for 100 s leave 1,500 J: for 15 s of a node, so for one job and a half."""
    budget = EnergyBudget(41_500, 0, 100)
    small = Small()
    result = run(jobs((0, 1, 10), (0, 1, 10)), small, budget)
    assert small.seen[0] == (0, [0, 1], [True, True], [0, 0])
    assert result.start.tolist() == [0, 100]
    assert small.seen[-1] == (100, [1], [True], [1])


# --- Wrong answers --------------------------------------------------------------------------


def test_more_nodes_than_are_free_are_an_error() -> None:
    """Whatever limits allow: the first of them is held back."""

    def all_of_them(view: PassView) -> list[int]:
        return list(range(len(view.job)))

    words = r"all_of_them at 0 s: it starts the job of row 1 \(place 1\), which does not fit into"
    with pytest.raises(DispatchError, match=words):
        run(THREE, all_of_them, PowerCap(500, 0, 20))


def test_a_dispatcher_may_wait_for_a_limit_but_not_for_ever() -> None:
    asked: list[int] = []

    def later(view: PassView) -> list[int]:
        asked.append(view.time)
        return view.in_order(range(len(view.job))) if view.time >= until else []

    cap = PowerCap(700, 10, 20)
    until = 20
    assert run(THREE, later, cap).start.tolist() == [20, 30, 20]
    assert asked[:3] == [0, 10, 20]
    until = 21
    words = r"later at 20 s: it starts nothing, when nothing runs and no job is still to come"
    with pytest.raises(DispatchError, match=words):
        run(THREE, later, cap)
    with pytest.raises(DispatchError, match="later at 0 s: it starts nothing"):
        run(THREE, later)


def test_nodes_that_are_to_be_switched_off_are_nothing_to_wait_for() -> None:
    with pytest.raises(DispatchError, match="at 0 s: it starts nothing"):
        run(THREE, lambda view: [], cluster=machine(SLEEPY, shutdown_after_s=60))
