"""Dispatchers by name and as functions, and what a view makes of an order."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from mistakes import mistakes_of
from node_strategies import machines, workloads_for
from same_results import cells_of
from strategies import predictions
from test_dispatching import FEW, TWO, Keeps, jobs_of

import hpcgym
from hpcgym import simulate
from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS, find_dispatcher
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.scheduler.allocations import WEIGHTED, WORST_FIT
from hpcgym.scheduler.dispatchers import BEST_FIT, FIRST_FIT, PassView
from hpcgym.scheduler.rules import Scheduler

SEEDS = st.integers(0, 2**16)


@settings(max_examples=100)
@given(st.data(), machines())
def test_next_second(data: st.DataObject, cluster: Cluster) -> None:
    """An overdue job is expected to end in the next second; nothing else is changed."""
    workload = data.draw(workloads_for(cluster))
    estimate = data.draw(st.one_of(st.just("ave2"), predictions(workload)))
    keeps = Keeps()
    rules = {"estimate": estimate, "correction": "next-second"}
    result = simulate(workload, keeps, cluster=cluster, **rules)
    hpcgym.validate_schedule(result)
    for view in keeps.views:
        predicted = result.predicted_run_time[view.running_job]
        first = result.start[view.running_job] + predicted
        assert view.running_end.tolist() == np.maximum(first, view.time + 1).tolist()
    actual = np.minimum(workload.run_time, workload.requested_time)
    assert result.run_time.tolist() == actual.tolist()


def test_next_second_is_seen_and_for_dispatchers_only() -> None:
    keeps = Keeps("fcfs-list")
    simulate(FEW, keeps, cluster=TWO, estimate=[1, 2, 5, 2], correction="next-second")
    assert keeps.told[1]["time"] == 3
    assert keeps.told[1]["running_end"] == [4, 4]


@pytest.mark.parametrize("where", [{"cluster": TWO}, {"processors": 6}], ids=["nodes", "pool"])
def test_a_dispatcher_is_the_same_however_it_is_given(where: dict[str, Any]) -> None:
    """Where predictions are too short, and so corrections are seen."""
    rules = {"estimate": [1, 2, 5, 2], **where}
    named, keeps = {"dispatcher": "prb"}, {"dispatcher": Keeps("prb")}
    ways: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        *((given, {}) for given in (("prb",), (Scheduler(dispatcher="prb"),))),
        *((given, named) for given in ((), ("easy",), (Scheduler(),))),
        ((Keeps("prb"),), {}),
        ((), keeps),
    ]
    results = [simulate(FEW, *dispatcher, **rules, **more) for dispatcher, more in ways]
    assert {result.scheduler.correction for result in results} == {"next-second"}
    views = [result.dispatcher.told for result in results[-2:]]
    assert views[0] == views[1]
    assert views[0][1]["running_end"] == [4, 4]
    given = simulate(FEW, "fcfs", dispatcher=Keeps("prb"), correction="requested", **rules)
    assert given.scheduler.correction == "requested"
    assert given.dispatcher.told[1]["running_end"] == [10, 20]


def test_a_dispatcher_is_told_that_a_simulation_begins() -> None:
    class Told(Keeps):
        begun = 0

        def begin(self) -> None:
            self.begun += 1
            self.told = []

    dispatcher = Told("prb")
    for times in (1, 2):
        assert simulate(FEW, dispatcher, cluster=TWO).dispatcher.begun == times
        assert dispatcher.told[0]["time"] == 0


# --- Names ----------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["nodes", "pool"])
@pytest.mark.parametrize("name", DISPATCHERS)
def test_every_name_runs(name: str, where: str) -> None:
    if name in CP_DISPATCHERS:
        pytest.importorskip("ortools")
    rows = [(0, 10, 10, 2, 1), (0, 9, 20, 1, 2), (0, 5, 5, 3, 2), (3, 2, 2, 1, 1), (4, 3, 8, 2, 2)]
    workload = jobs_of(rows)
    options: dict[str, Any] = {"cluster": TWO} if where == "nodes" else {"processors": 6}
    result = simulate(workload, name, **options)
    hpcgym.validate_schedule(result)
    expected = Scheduler(dispatcher=name, correction="next-second")
    assert result.scheduler == expected
    assert result.dispatcher is not simulate(workload, name, **options).dispatcher
    assert result.dispatcher.name == name
    again = simulate(workload, expected, **options)
    assert again.start.tolist() == result.start.tolist()


def test_a_view_by_hand_knows_what_waits() -> None:
    """As in `test_rules_by_hand.py`: the first job leaves the node of four to the second."""
    queue = {"submit": [0, 0], "duration": [9, 9], "units": [1, 1], "per_unit": [[1, 1], [3, 1]]}
    machine = [[4, 2], [2, 4]]
    view = PassView.of(0, ("core", "mem"), machine, queue=queue, allocation=WEIGHTED)
    assert [(place, node.tolist()) for place, node in view.placed([0, 1])] == [(0, [1]), (1, [0])]
    # once that has started, nobody else waits
    ((_, node),) = view.placed([0], after=[1])
    assert node.tolist() == [0]
    assert view.plan([0, 1]).node.tolist() == [1, 0]


@pytest.mark.parametrize("name", ["cph-0", "cp-0"])
def test_jobs_beyond_the_window_draw_orders_of_their_own(name: str) -> None:
    pytest.importorskip("ortools")
    from hpcgym.baselines.cp.dispatcher import SearchLimits

    keeps = Keeps(find_dispatcher(name))
    keeps.ask.limits = SearchLimits(jobs=1)  # type: ignore[attr-defined]
    cluster = Cluster(groups=(NodeGroup("a", 8, {"core": 8}),))
    workload = jobs_of([(0, 10, 10, 1, 1)] * 6)
    result = simulate(workload, keeps, cluster=cluster, allocation="random:1")
    expected = simulate(workload, "prb", cluster=cluster, allocation="random:1")
    assert keeps.ask.log[0]["considered"] == 1  # type: ignore[attr-defined]
    assert result.start.tolist() == [0] * 6
    assert cells_of(result.allocation) == cells_of(expected.allocation)


def hold(free: list[int], demand: list[int]) -> int:
    return max(min(have // need for have, need in zip(free, demand, strict=True) if need), 0)


def placed(
    free: list[list[int]],
    total: list[int],
    units: int,
    demand: list[int],
    most: int,
    allocation: int,
) -> dict[int, int] | None:
    """Return node -> units, None if they do not fit; and take them."""
    shares = [sum(have / all_ for have, all_ in zip(f, total, strict=True)) for f in free]
    sign = {FIRST_FIT: 0, BEST_FIT: 1, WORST_FIT: -1}[allocation]
    cells: dict[int, int] = {}
    for node in sorted(range(len(free)), key=lambda node: sign * shares[node]):
        here = min(units, hold(free[node], demand), most)
        if here:
            cells[node] = here
            units -= here
    if units:
        return None
    for node, here in cells.items():
        free[node] = [have - here * need for have, need in zip(free[node], demand, strict=True)]
    return cells


@settings(max_examples=200)
@given(st.data(), machines(), st.sampled_from(["first-fit", "best-fit", "worst-fit"]), SEEDS)
def test_fits_in_order_and_plan_are_those_of_plain_python(
    data: st.DataObject, cluster: Cluster, allocation: str, seed: int
) -> None:
    """Of a state in the middle of a simulation."""
    random, keeps = Random(seed), Keeps("prb")
    simulate(data.draw(workloads_for(cluster)), keeps, cluster=cluster, allocation=allocation)
    view = random.choice(keeps.views)
    capacity, total = view.capacity.tolist(), view.total.tolist()
    now, order = view.time, random.sample(range(len(view.job)), len(view.job))
    demands, units = view.per_unit.tolist(), view.units.tolist()
    most = view.units_per_node.tolist()
    ends: dict[int, list[tuple[dict[int, int], list[int]]]] = {}
    free = [list(node) for node in capacity]

    def give(cells: dict[int, int], demand: list[int], sign: int) -> None:
        for node, here in cells.items():
            free[node] = [f + sign * here * d for f, d in zip(free[node], demand, strict=True)]

    for k, end in enumerate(view.running_end.tolist()):
        a, b = view.running_first[k : k + 2].tolist()
        cells = dict(
            zip(view.running_node[a:b].tolist(), view.running_units[a:b].tolist(), strict=True)
        )
        demand = view.running_per_unit[k].tolist()
        give(cells, demand, -1)
        ends.setdefault(end, []).append((cells, demand))
        assert end > now
    assert view.free.tolist() == free
    alone = [
        sum(min(hold(node, demand), on_one) for node in free) >= number
        for number, demand, on_one in zip(units, demands, most, strict=True)
    ]
    assert view.fits().tolist() == alone

    some = order[: random.randrange(3) * len(order) // 2]  # an order may leave places out
    trial = [list(node) for node in free]
    taken = [
        place
        for place in some
        if placed(trial, total, units[place], demands[place], most[place], view.allocation)
        is not None
    ]
    assert view.in_order(some) == taken

    start, where = [-1] * len(order), [{}] * len(order)
    while min(start, default=0) < 0:
        for place in order:
            if start[place] >= 0:
                continue
            given = units[place], demands[place], most[place], view.allocation
            cells = placed(free, total, *given)
            if cells is not None:
                start[place], where[place] = now, cells
                end = now + max(int(view.duration[place]), 1)
                ends.setdefault(end, []).append((cells, demands[place]))
        if min(start) < 0:
            now = min(ends)
            for cells, demand in ends.pop(now):
                give(cells, demand, 1)
    plan = view.plan(order)
    assert plan.start.tolist() == start
    for place, cells in enumerate(where):
        a, b = plan.first[place : place + 2].tolist()
        assert dict(zip(plan.node[a:b].tolist(), plan.units[a:b].tolist(), strict=True)) == cells
    # what a view is asked changes nothing in it
    assert view.plan(order).start.tolist() == start
    assert view.fits().tolist() == alone


test_mistakes = mistakes_of(globals())
