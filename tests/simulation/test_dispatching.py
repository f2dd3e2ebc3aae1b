"""Dispatchers: what they are shown and may answer, also under limits."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from mistakes import mistakes_of
from node_strategies import machines, workloads_for
from predictors import Crooked
from same_results import cells_of

import hpcgym
from hpcgym import Cluster, Workload, simulate, validate_schedule
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.machine import NodeGroup, NodePower
from hpcgym.schedule.result import Result
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.dispatchers.asking import DispatchError
from hpcgym.scheduler.limits import PowerCap

#: Learns fast, and is often wrong within a few jobs.
EAGER = "regression:over=absolute,under=squared,weight=small,eta=1,l2=0"

#: A node of 4 cores and one of 2.
TWO = Cluster(groups=(NodeGroup("a", 1, {"core": 4}), NodeGroup("b", 1, {"core": 2})))


def jobs_of(rows: list[tuple[int, int, int, int, int]]) -> Workload:
    """Return jobs of (submission, run time, requested time, units, cores of a unit)."""
    submit, run, requested, units, core = (list(column) for column in zip(*rows, strict=True))
    return few_jobs(
        6,
        submit,
        run,
        [a * b for a, b in zip(units, core, strict=True)],
        requested,
        name="few",
        units=units,
        per_unit={"core": core},
    )


FEW = jobs_of([(0, 10, 10, 2, 1), (0, 10, 20, 1, 2), (0, 5, 5, 3, 2), (3, 2, 2, 1, 1)])


# --- Dispatchers of one's own ---------------------------------------------------------------


def smallest_first(view: PassView) -> list[int]:
    """Start what fits, the smallest total of cores first."""
    cores = view.units * view.per_unit[:, 0]
    return view.in_order(np.argsort(cores, kind="stable"))


def test_a_dispatcher_is_a_function_of_a_few_lines() -> None:
    result = simulate(FEW, smallest_first, cluster=TWO)
    assert result.start.tolist() == [0, 0, 10, 3]
    assert cells_of(result.allocation) == [{0: 2}, {0: 1}, {0: 2, 1: 1}, {1: 1}]
    assert result.dispatcher is smallest_first
    assert result.scheduler.reserve.kind == "none"
    assert result.outside
    assert not simulate(FEW, "easy", cluster=TWO).outside
    assert not result.backfilled.any()
    assert (result.reserved_start == -1).all()
    assert "smallest_first" in json.dumps(result.scheduler.describe())
    hpcgym.validate_schedule(result)
    on_pool = simulate(FEW, smallest_first, processors=6)
    assert on_pool.allocation is None
    hpcgym.validate_schedule(on_pool)


def test_a_dispatcher_may_choose_nodes() -> None:
    def last_nodes(view: PassView) -> Any:
        for place in view.in_order(np.arange(len(view.job))):
            if view.units[place] == 2:
                yield place, np.array([1, 1])
            elif view.units[place] == 1 and view.per_unit[place, 0] == 2:
                yield place, [0]
            else:
                yield place

    result = simulate(FEW, last_nodes, cluster=TWO)
    assert result.start[:2].tolist() == [0, 0]
    assert cells_of(result.allocation)[:2] == [{1: 2}, {0: 1}]
    hpcgym.validate_schedule(result)


def test_it_is_asked_once_a_pass_at_which_some_job_fits() -> None:
    seen = []

    def watch(view: PassView) -> list[int]:
        seen.append((view.time, view.job.tolist(), view.fits().any()))
        return view.in_order(range(len(view.job)))

    simulate(FEW, watch, cluster=TWO)
    assert seen == [(0, [0, 1, 2], True), (3, [2, 3], True), (10, [2], True)]


# --- Wrong answers --------------------------------------------------------------------------


# --- What is shown --------------------------------------------------------------------------


def plain(view: PassView) -> dict[str, Any]:
    """Return all that a view tells, as lists."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(view).items()
    }


class Keeps:
    """Asks another, and keeps the views, with what they held at the time."""

    def __init__(self, dispatcher: Any = "prb") -> None:
        self.ask = find_dispatcher(dispatcher) if isinstance(dispatcher, str) else dispatcher
        self.views: list[PassView] = []
        self.told: list[dict[str, Any]] = []

    def __call__(self, view: PassView) -> Any:
        self.views.append(view)
        self.told.append(plain(view))
        return self.ask(view)


@st.composite
def shown(draw: st.DrawFn) -> tuple[Cluster, Workload, dict[str, Any]]:
    """A machine, jobs, and rules that a dispatcher may be simulated with."""
    cluster = draw(machines())
    estimate = draw(st.sampled_from(["requested", "ave2", "ave2", "double-requested", EAGER]))
    corrections = ["requested", "incremental", "recursive-doubling", "next-second", "kill"]
    if estimate == EAGER:
        corrections.append("predicted-again")
    rules = {
        "estimate": estimate,
        "correction": draw(st.sampled_from(corrections)),
        "allocation": draw(st.sampled_from(["first-fit", "best-fit", "worst-fit", "random:2"])),
    }
    return cluster, draw(workloads_for(cluster)), rules


@pytest.mark.slow
@settings(max_examples=80)
@given(shown(), st.sampled_from(["prb", "sjf-list", "sdprb"]))
def test_a_view_is_the_state(case: tuple[Cluster, Workload, dict[str, Any]], name: str) -> None:
    """All is worked out again from the schedule that results."""
    cluster, workload, rules = case
    keeps = Keeps(name)
    result = simulate(workload, keeps, cluster=cluster, **rules)
    hpcgym.validate_schedule(result)
    held = cells_of(result.allocation)
    submit, start, end = workload.submit_time, result.start, result.end
    for view, seen in zip(keeps.views, keeps.told, strict=True):
        assert plain(view) == seen  # it has not changed since
        now = view.time
        assert view.job.tolist() == np.flatnonzero((submit <= now) & (start >= now)).tolist()
        assert (
            sorted(view.running_job.tolist())
            == np.flatnonzero((start < now) & (end > now)).tolist()
        )
        assert view.wait.tolist() == (now - submit[view.job]).tolist()
        assert view.duration.tolist() == result.predicted_run_time[view.job].tolist()
        assert view.requested.tolist() == workload.requested_time[view.job].tolist()
        assert view.units.tolist() == workload.units[view.job].tolist()
        free = cluster.capacity.tolist()
        ends = zip(view.running_first.tolist(), view.running_first[1:].tolist(), strict=False)
        for k, (row, (a, b)) in enumerate(zip(view.running_job.tolist(), ends, strict=True)):
            cells = dict(
                zip(view.running_node[a:b].tolist(), view.running_units[a:b].tolist(), strict=True)
            )
            assert cells == held[row]
            demand = [int(workload.per_unit[name][row]) for name in cluster.resources]
            assert view.running_per_unit[k].tolist() == demand
            for node, units in cells.items():
                free[node] = [f - units * d for f, d in zip(free[node], demand, strict=True)]
        assert view.free.tolist() == free
        assert view.running_start.tolist() == start[view.running_job].tolist()
        assert (view.running_end > now).all()
        assert (np.diff(view.running_end) >= 0).all()
        assert view.total.tolist() == cluster.capacity.sum(axis=0).tolist()


def test_views_are_read_only() -> None:
    keeps = Keeps()
    simulate(FEW, keeps, cluster=TWO)
    for view in keeps.views:
        arrays = (value for value in vars(view).values() if isinstance(value, np.ndarray))
        assert not any(array.flags.writeable for array in arrays)
    assert repr(keeps.views[0]) == "PassView(0 s, 3 queued, 0 running jobs)"


# --- Policies that are functions ----------------------------------------------------------------

BUSY = hpcgym.load_workload("lublin:jobs=250,processors=32,seed=7,load=1.3,users=6")
ALL_ESTIMATES = ("requested", "double-requested", "clairvoyant", "ave2", "typical-ratio", EAGER)


@pytest.mark.parametrize(
    "rules",
    [{}, {"backfill_order": "sjbf"}, {"backfill": "depth:2"}, {"cluster": "4x2x4", "hold": 0.1}],
)
@pytest.mark.parametrize("estimate", [*ALL_ESTIMATES, Crooked])
def test_a_function_sees_the_run_times_that_orders_by_name_look_at(
    estimate: Any, rules: dict[str, Any]
) -> None:
    """Least area first, by what the view tells at each pass, is the order of that name."""
    requested = []

    def least_area(view: PassView) -> Any:
        requested.append(np.array_equal(view.policy_time, view.requested))
        return -(view.policy_time * view.processors)

    def simulated(policy: Any) -> Result:
        looks_at = estimate if isinstance(estimate, str) else estimate()
        changes = {"backfill_order": "spf", "policy_estimate": looks_at, **rules}
        return simulate(BUSY, policy=policy, **changes)

    named, by_function = simulated("saf"), simulated(least_area)
    assert by_function.start.tolist() == named.start.tolist()
    assert all(requested) == (estimate == "requested")


def test_a_dispatcher_sees_requested_times() -> None:
    keeps = Keeps()
    simulate(FEW, keeps, cluster=TWO)
    for view in keeps.views:
        assert view.policy_time.tolist() == view.requested.tolist()


@settings(max_examples=100)
@given(shown(), st.sampled_from(["prb", "sjf-list"]), st.data(), st.integers(0, 2**16))
def test_nothing_is_shown_that_is_not_known_yet(
    case: tuple[Cluster, Workload, dict[str, Any]], name: str, data: st.DataObject, seed: int
) -> None:
    """Other run times of jobs that have not ended, and other jobs to come: the same views."""
    cluster, workload, rules = case
    keeps = Keeps(name)
    result = simulate(workload, keeps, cluster=cluster, **rules)
    now = data.draw(st.sampled_from([view.time for view in keeps.views]))
    rng = np.random.default_rng(seed)
    submit, run = workload.submit_time.copy(), workload.run_time.copy()
    requested = workload.requested_time.copy()
    for row in np.flatnonzero(result.end > now).tolist():
        least = max(now + 1 - int(result.start[row]), 1)
        run[row] = rng.integers(least, max(2 * int(requested[row]), least) + 1)
    later = submit > now
    submit[later] += np.cumsum(rng.choice([0, 1, 600], int(later.sum())))
    requested[later] = rng.integers(1, 3000, int(later.sum()))
    users = workload.user_id.copy()
    users[later] = 5
    other = workload.with_columns(
        submit_time=submit, run_time=run, requested_time=requested, user_id=users
    )
    again = Keeps(name)
    simulate(other, again, cluster=cluster, **rules)
    before = [seen for seen in keeps.told if seen["time"] <= now]
    assert [seen for seen in again.told if seen["time"] <= now] == before


# --- Under limits, where a unit is a whole node ---------------------------------------------


def machine(cores: int = 1, **more: Any) -> Cluster:
    """Four nodes: idle 100 W, busy 200 W."""
    power = NodePower(100, 200, 10, shutdown_time_s=5, boot_time_s=20)
    return Cluster(groups=(NodeGroup("node", 4, {"core": cores}, power),), **more)


def wide(*rows: tuple[int, int, int]) -> Workload:
    """Jobs of (submit, processors, run time, which is requested)."""
    submit, processors, run = (list(column) for column in zip(*rows, strict=True))
    return few_jobs(16, submit, run, processors)


THREE = wide((0, 3, 10), (0, 2, 5), (0, 1, 5))


def run(workload: Workload, dispatcher: Any, *limits: Any, **rules: Any) -> Result:
    """Simulate, and prove that the schedule is valid."""
    result = simulate(workload, dispatcher, limits=limits, **{"cluster": machine(), **rules})
    validate_schedule(result)
    return result


def test_a_unit_is_a_whole_node() -> None:
    """A job of 5 cores has 2 nodes of 4; the machine says which, whatever is named."""
    seen: list[PassView] = []

    def last(view: PassView) -> list[tuple[int, list[int]]]:
        seen.append(view)
        return [(0, [3, 2])] if view.time == 0 else [(0, [3])]

    result = run(wide((0, 5, 9), (2, 1, 3)), last, cluster=machine(4))
    assert cells_of(result.allocation) == [{0: 4, 1: 1}, {2: 1}]
    second = seen[1]
    assert (second.units.tolist(), second.per_unit.tolist()) == ([1], [[4]])
    assert second.free[:, 0].tolist() == [0, 0, 4, 4]
    assert second.running_units.tolist() == [1, 1]
    assert second.running_end.tolist() == [9]


CAP = PowerCap(700, 10, 20)


def starting_from(until: int) -> Any:
    """Return a dispatcher that starts all that waits, from a time on."""

    def later(view: PassView) -> list[int]:
        return view.in_order(range(len(view.job))) if view.time >= until else []

    return later


def test_a_dispatcher_may_wait_for_a_limit() -> None:
    assert run(THREE, starting_from(20), CAP).start.tolist() == [20, 30, 20]


test_mistakes = mistakes_of(globals(), errors=(AttributeError, DispatchError, ZeroDivisionError))
