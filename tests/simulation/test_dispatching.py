"""Dispatchers: what they are shown and may answer, and what a view makes of an order."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, given, settings
from drawing import strategies as st
from node_strategies import machines, most_units, workloads_for
from strategies import predictions, workloads

import hpcgym
from hpcgym import HpcgymError, simulate
from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS, find_dispatcher
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.scheduler.allocations import WEIGHTED, WORST_FIT
from hpcgym.scheduler.dispatchers import BEST_FIT, FIRST_FIT, PassView
from hpcgym.scheduler.dispatchers.asking import DispatchError
from hpcgym.scheduler.rules import OF_THE_QUEUE, Scheduler
from hpcgym.workload import Workload, load_workload

SLOW = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

#: Learns fast, and is often wrong within a few jobs.
EAGER = "regression:over=absolute,under=squared,weight=small,eta=1,l2=0"

#: A node of 4 cores and one of 2.
TWO = Cluster(groups=(NodeGroup("a", 1, {"core": 4}), NodeGroup("b", 1, {"core": 2})))


def jobs_of(rows: list[tuple[int, int, int, int, int]]) -> Workload:
    """Return jobs of (submission, run time, requested time, units, cores of a unit)."""
    submit, run, requested, units, core = (list(column) for column in zip(*rows, strict=True))
    columns = {
        "submit_time": submit,
        "run_time": run,
        "requested_time": requested,
        "requested_processors": [a * b for a, b in zip(units, core, strict=True)],
    }
    return Workload.from_columns(
        columns, processors=6, name="few", units=units, per_unit={"core": core}
    )


FEW = jobs_of([(0, 10, 10, 2, 1), (0, 10, 20, 1, 2), (0, 5, 5, 3, 2), (3, 2, 2, 1, 1)])


def units_on_nodes(result: Any) -> list[dict[int, int]]:
    """Return of each job node -> units on it."""
    first, node, units = (part.tolist() for part in result.allocation)
    return [
        dict(zip(node[first[j] : first[j + 1]], units[first[j] : first[j + 1]], strict=True))
        for j in range(len(first) - 1)
    ]


# --- Dispatchers of one's own ---------------------------------------------------------------


def smallest_first(view: PassView) -> list[int]:
    """Start what fits, the smallest total of cores first."""
    cores = view.units * view.per_unit[:, 0]
    return view.in_order(np.argsort(cores, kind="stable"))


def test_a_dispatcher_is_a_function_of_a_few_lines() -> None:
    result = simulate(FEW, smallest_first, cluster=TWO)
    assert result.start.tolist() == [0, 0, 10, 3]
    assert units_on_nodes(result) == [{0: 2}, {0: 1}, {0: 2, 1: 1}, {1: 1}]
    assert result.dispatcher is smallest_first
    assert result.scheduler.backfill == "none"
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
    assert units_on_nodes(result)[:2] == [{1: 2}, {0: 1}]
    hpcgym.validate_schedule(result)


def test_numbers_of_any_kind_are_places() -> None:
    for kind in (np.int64, np.uint8, int):
        result = simulate(FEW, lambda v, k=kind: map(k, v.in_order(range(len(v.job)))), cluster=TWO)
        assert result.start.tolist() == simulate(FEW, "fcfs-list", cluster=TWO).start.tolist()
    array = simulate(FEW, lambda v: np.array(v.in_order(range(len(v.job)))), cluster=TWO)
    assert array.start.tolist() == result.start.tolist()


def test_it_is_asked_once_a_pass_at_which_some_job_fits() -> None:
    seen = []

    def watch(view: PassView) -> list[int]:
        seen.append((view.time, view.job.tolist(), view.fits().any()))
        return view.in_order(range(len(view.job)))

    simulate(FEW, watch, cluster=TWO)
    assert seen == [(0, [0, 1, 2], True), (3, [2, 3], True), (10, [2], True)]


class Waits:
    """Starts nothing while a job is still to come."""

    name = "waits"

    def __call__(self, view: PassView) -> list[int]:
        return view.in_order(range(len(view.job))) if view.time >= 3 else []


def test_a_dispatcher_may_wait() -> None:
    result = simulate(FEW, Waits(), cluster=TWO)
    assert result.start.tolist() == [3, 3, 13, 3]
    assert "waits" in str(result.scheduler.describe()["dispatcher"])


# --- Wrong answers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, r"at 0 s: it must return the places that start, not None"),
        (0, r"must return the places that start, not 0"),
        ("0", r"starts '0', which is no place from 0 to 2"),
        ([0.0], r"starts 0\.0, which is no place from 0 to 2"),
        ([None], r"starts None, which is no place"),
        ([(0,)], r"starts \(0,\), which is no place"),
        ([[0, [0, 0]]], r"starts \[0, \[0, 0\]\], which is no place"),
        ([3], r"starts 3, which is no place from 0 to 2"),
        ([0, -1], r"starts -1, which is no place"),
        ([10**30], r"which is no place"),
        (np.array([[0]]), r"which is no place"),
        ([1, 1], r"starts the job of row \d \(place 1\) twice"),
        ([2, 0], r"starts the job of row \d \(place 0\), which does not fit into what is free"),
        ([(0, [0])], r"must name a node for each of the 2 units of the job of row \d \(place 0\)"),
        ([(0, [0, 1, 1])], r"must name a node for each of the 2 units"),
        ([(0, [[0, 1]])], r"must name a node for each of the 2 units"),
        ([(0, [[0], [0, 1]])], r"must name a node for each of the 2 units"),
        ([(0, 0)], r"must name a node for each of the 2 units"),
        ([(0, "ab")], r"must name a node for each of the 2 units"),
        ([(0, [0.0, 1.0])], r"must name a node for each of the 2 units"),
        ([(0, [True, False])], r"must name a node for each of the 2 units"),
        ([(0, [0, 2])], r"names a node for the job of row \d \(place 0\) beyond 0 to 1"),
        ([(0, [-1, 0])], r"names a node for the job of row \d \(place 0\) beyond 0 to 1"),
        (
            [(2, [0, 1, 1])],
            r"the job of row \d \(place 2\), which does not fit on the nodes it names",
        ),
        ([(0, [1, 1]), (1, [1])], r"\(place 1\), which does not fit on the nodes it names"),
    ],
    ids=str,
)
def test_a_wrong_answer_is_told(answer: Any, message: str) -> None:
    def wrong(view: PassView) -> Any:
        return answer

    with pytest.raises(DispatchError, match=message) as told:
        simulate(FEW, wrong, cluster=TWO)
    assert str(told.value).startswith("dispatcher wrong at 0 s: it ")
    assert "\n" not in str(told.value)


def test_the_job_is_called_by_its_number() -> None:
    numbered = FEW.with_columns(job_number=np.array([11, 12, 13, 14]))
    with pytest.raises(
        DispatchError, match=r"dispatcher waits .* at 0 s|starts job 12 \(place 1\)"
    ):
        simulate(numbered, lambda view: [1, 1], cluster=TWO)


def test_what_starts_nothing_for_ever_is_told() -> None:
    with pytest.raises(
        DispatchError,
        match=r"^dispatcher <lambda> at 3 s: it starts nothing, when nothing runs and no job is"
        r" still to come: the job of row 0 \(place 0\) and 3 others would wait for ever$",
    ):
        simulate(FEW, lambda view: [], cluster=TWO)


def test_what_is_asked_of_the_view_wrongly_is_told() -> None:
    def lists(view: PassView) -> Any:
        return view.in_order([0, 1, 1])

    def yields(view: PassView) -> Any:
        yield from view.in_order([len(view.job)])

    twice = r"places from 0 to 2, each once, not 1 \(the job of row 1\) twice$"
    for dispatcher, message in ((lists, twice), (yields, "places from 0 to 2, each once, not 3$")):
        said = f"^dispatcher {dispatcher.__name__} at 0 s: an order has {message}"
        with pytest.raises(DispatchError, match=said):
            simulate(FEW, dispatcher, cluster=TWO)


def test_errors_of_the_dispatcher_are_its_own() -> None:
    def fails(view: PassView) -> Any:
        yield 0
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        simulate(FEW, fails, cluster=TWO)


def test_a_class_is_no_dispatcher() -> None:
    with pytest.raises(HpcgymError, match=r"not be the class Waits; give Waits\(\)"):
        simulate(FEW, Waits, cluster=TWO)
    with pytest.raises(HpcgymError, match="dispatcher must be a name or a callable, not 7"):
        simulate(FEW, dispatcher=7, cluster=TWO)  # type: ignore[arg-type]
    with pytest.raises(HpcgymError, match="unknown dispatcher 'prbb'; did you mean 'prb'"):
        simulate(FEW, dispatcher="prbb", cluster=TWO)


@pytest.mark.parametrize(
    "rule",
    [
        {"policy": "saf"},
        {"policy": (0.0, 0.0, 0.0, 0.0, 0.0, -1.0)},
        {"policy": "fcfs"},
        {"backfill": "conservative"},
        {"backfill": "easy"},
        {"backfill_order": "sjbf"},
        {"threshold": 3600},
        {"passes": "per-event"},
        {"policy_estimate": "e-loss"},
        {"policy_estimate": [1, 2, 3, 4]},
    ],
    ids=str,
)
def test_rules_of_the_queue_do_not_go_beside_a_dispatcher(rule: dict[str, Any]) -> None:
    (name,) = rule
    why = "is asked once at each time" if name == "passes" else "says itself what starts"
    for called, dispatcher in (("prb", "prb"), ("smallest_first", smallest_first)):
        message = f"^{name} does not go with the dispatcher {called}, which {why}: leave {name} out"
        with pytest.raises(HpcgymError, match=message):
            simulate(FEW, dispatcher, cluster=TWO, **rule)
        with pytest.raises(HpcgymError, match=message):
            simulate(FEW, dispatcher=dispatcher, cluster=TWO, **rule)


def test_two_dispatchers_are_told() -> None:
    with pytest.raises(HpcgymError, match=r"^dispatcher: there is one already"):
        simulate(FEW, "prb", dispatcher="sdprb", cluster=TWO)


def test_rules_of_the_queue_are_not_described_beside_a_dispatcher() -> None:
    rules = Scheduler(dispatcher="prb", estimate="ave2", correction="kill").describe()
    for rule in OF_THE_QUEUE:
        assert rules.pop(rule) is None
    assert rules == {
        "estimate": "ave2",
        "correction": "kill",
        "passes": "per-timestamp",
        "allocation": "first-fit",
        "dispatcher": "prb",
        "dispatch_time": None,
        "fair_share": None,
        "power": "none",
        "partners": "fill",
        "pairs_above": None,
        "pair_estimate": "known",
    }
    assert Scheduler(backfill="none").describe()["backfill"] == "none"


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
@settings(SLOW, max_examples=80)
@given(shown(), st.sampled_from(["prb", "sjf-list", "sdprb"]))
def test_a_view_is_the_state(case: tuple[Cluster, Workload, dict[str, Any]], name: str) -> None:
    """All is worked out again from the schedule that results."""
    cluster, workload, rules = case
    keeps = Keeps(name)
    result = simulate(workload, keeps, cluster=cluster, **rules)
    hpcgym.validate_schedule(result)
    held = units_on_nodes(result)
    submit, start, end = workload.submit_time, result.start, result.end
    for view, told in zip(keeps.views, keeps.told, strict=True):
        assert plain(view) == told  # it has not changed since
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
        for name, value in vars(view).items():
            if isinstance(value, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    value[...] = 0
            with pytest.raises(AttributeError):
                setattr(view, name, value)
    assert repr(keeps.views[0]) == "PassView(0 s, 3 queued, 0 running jobs)"


@settings(SLOW, max_examples=100)
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
    before = [told for told in keeps.told if told["time"] <= now]
    assert [told for told in again.told if told["time"] <= now] == before


def test_a_clairvoyant_estimate_shows() -> None:
    """The test above can fail."""
    shown = []
    for run in (10, 9):
        keeps = Keeps()
        jobs = FEW.with_columns(run_time=np.array([run, 10, 5, 2]))
        simulate(jobs, keeps, cluster=TWO, estimate="clairvoyant")
        shown.append(keeps.told[0])
    assert shown[0] != shown[1]


# --- What a view makes of an order ----------------------------------------------------------


def hold(free: list[int], demand: list[int]) -> int:
    return max(min(have // need for have, need in zip(free, demand, strict=True) if need), 0)


def placed(
    free: list[list[int]], total: list[int], units: int, demand: list[int], allocation: int
) -> dict[int, int] | None:
    """Return node -> units, None if they do not fit; and take them."""
    shares = [sum(have / all_ for have, all_ in zip(f, total, strict=True)) for f in free]
    sign = {FIRST_FIT: 0, BEST_FIT: 1, WORST_FIT: -1}[allocation]
    cells: dict[int, int] = {}
    for node in sorted(range(len(free)), key=lambda node: sign * shares[node]):
        here = min(units, hold(free[node], demand))
        if here:
            cells[node] = here
            units -= here
    if units:
        return None
    for node, here in cells.items():
        free[node] = [have - here * need for have, need in zip(free[node], demand, strict=True)]
    return cells


@st.composite
def views(draw: st.DrawFn) -> PassView:
    """A state in which some jobs run and others are queued, in a machine that may be full."""
    cluster = draw(machines())
    capacity, n = cluster.capacity.tolist(), len(cluster.resources)
    now = draw(st.sampled_from([0, 100]))
    allocation = draw(st.sampled_from([FIRST_FIT, BEST_FIT, WORST_FIT]))
    free, total = [list(node) for node in capacity], cluster.capacity.sum(axis=0).tolist()
    running: dict[str, list[Any]] = {key: [] for key in ("start", "end", "per_unit")}
    first, node, units = [0], [], []

    def demand() -> list[int]:
        have = capacity[draw(st.integers(0, len(capacity) - 1))]
        return [draw(st.integers(1, have[0])), *(draw(st.integers(0, more)) for more in have[1:])]

    for _ in range(draw(st.integers(0, 6))):
        need = demand()
        cells = placed(free, total, draw(st.integers(1, 3)), need, WORST_FIT)
        if cells is None:
            continue
        running["start"].append(now - draw(st.integers(0, 50)))
        running["end"].append(now + draw(st.sampled_from([-5, 0, 1, 2, 7, 7, 30])))
        running["per_unit"].append(need)
        node += list(cells)
        units += list(cells.values())
        first.append(len(node))
    queue: dict[str, list[Any]] = {key: [] for key in ("submit", "duration", "units", "per_unit")}
    for _ in range(draw(st.integers(0, 8))):
        need = demand()
        queue["submit"].append(now - draw(st.integers(0, 20)))
        queue["duration"].append(draw(st.sampled_from([0, 1, 2, 7, 30])))
        queue["units"].append(draw(st.integers(1, most_units(cluster.capacity.tolist(), need))))
        queue["per_unit"].append(need)
    return PassView.of(
        now, cluster.resources, capacity, queue={**queue, "per_unit": np.reshape(
            queue["per_unit"], (-1, n)
        )}, running={**running, "first": first, "node": node, "units": units},
        allocation=allocation,
    )  # fmt: skip


def order_of(view: PassView, seed: int) -> list[int]:
    order: list[int] = np.random.default_rng(seed).permutation(len(view.job)).tolist()
    return order


@settings(SLOW, max_examples=300)
@given(views(), st.integers(0, 2**16))
def test_fits_in_order_and_plan_are_those_of_plain_python(view: PassView, seed: int) -> None:
    capacity, total = view.capacity.tolist(), view.total.tolist()
    now, order = view.time, order_of(view, seed)
    demands, units = view.per_unit.tolist(), view.units.tolist()
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
        sum(hold(node, demand) for node in free) >= number
        for number, demand in zip(units, demands, strict=True)
    ]
    assert view.fits().tolist() == alone

    some = order[: (seed % 3) * len(order) // 2]  # an order may leave places out
    trial = [list(node) for node in free]
    taken = [
        place
        for place in some
        if placed(trial, total, units[place], demands[place], view.allocation) is not None
    ]
    assert view.in_order(some) == taken

    start, where = [-1] * len(order), [{}] * len(order)
    while min(start, default=0) < 0:
        for place in order:
            if start[place] >= 0:
                continue
            cells = placed(free, total, units[place], demands[place], view.allocation)
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


def test_a_plan_by_hand() -> None:
    """Two nodes; a job runs on the first to second 8, three wait."""
    view = PassView.of(
        5,
        ("core", "gpu"),
        [[4, 1], [4, 0]],
        queue={
            "submit": [1, 2, 3],
            "duration": [10, 4, 6],
            "units": [1, 1, 2],
            "per_unit": [[1, 1], [4, 0], [2, 0]],
        },
        running={
            "start": [0],
            "end": [8],
            "per_unit": [[1, 1]],
            "first": [0, 1],
            "node": [0],
            "units": [1],
        },
    )
    assert view.free.tolist() == [[3, 0], [4, 0]]
    assert view.fits().tolist() == [False, True, True]
    assert view.in_order([0, 1, 2]) == [1]
    assert view.in_order([2, 1]) == [2]
    plan = view.plan([0, 1, 2])
    # at 8 the first has its GPU; then 3 + 0 cores are free for 2 units of 2, so these wait to 9
    assert plan.start.tolist() == [8, 5, 9]
    assert plan.node.tolist() == [0, 1, 0, 1]
    assert plan.units.tolist() == [1, 1, 1, 1]
    assert view.wait.tolist() == [4, 3, 2]
    assert view.requested.tolist() == [10, 4, 6]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 0], "places from 0 to 1, each once"),
        ([2], "places from 0 to 1, each once"),
        ([-1, 0], "places from 0 to 1, each once"),
        ([0.0, 1.0], "a list of places"),
        ([[0, 1]], "a list of places"),
        ("01", "a list of places"),
        ([True, False], "a list of places"),
    ],
    ids=str,
)
def test_an_order_that_is_none_is_told(order: Any, message: str) -> None:
    queue = {"submit": [0, 0], "duration": [1, 1], "units": [1, 1], "per_unit": [[1], [1]]}
    view = PassView.of(0, ("core",), [[4]], queue=queue)
    for way in (view.in_order, view.plan):
        with pytest.raises(HpcgymError, match=message):
            way(order)
    with pytest.raises(HpcgymError, match="a plan needs an order of all 2 places"):
        view.plan([1])
    assert view.in_order([]) == []


def test_a_plan_of_a_job_that_never_fits_is_told() -> None:
    queue = {"submit": [0], "duration": [1], "units": [1], "per_unit": [[5]]}
    view = PassView.of(0, ("core",), [[4]], queue=queue)
    assert view.fits().tolist() == [False]
    message = r"^the job of row 0 never fits: it asks for 1 x \(5 core\), which the empty machine"
    with pytest.raises(HpcgymError, match=message):
        view.plan([0])


# --- Corrections ----------------------------------------------------------------------------


def killed_as_said(result: Any) -> None:
    workload = result.workload
    actual = np.minimum(workload.run_time, workload.requested_time)
    expected = np.minimum(actual, result.predicted_run_time)
    assert result.run_time.tolist() == expected.tolist()
    assert result.end.tolist() == (result.start + expected).tolist()
    assert result.killed.tolist() == (workload.run_time > expected).tolist()
    hpcgym.validate_schedule(result)


SCHEDULERS = st.sampled_from(["fcfs", "easy", "easy-sjbf", "conservative", "prb", "sdprb"])


@pytest.mark.slow
@settings(SLOW, max_examples=80)
@given(st.data(), SCHEDULERS)
def test_kill_on_nodes(data: st.DataObject, scheduler: str) -> None:
    cluster = data.draw(machines())
    workload = data.draw(workloads_for(cluster))
    named = st.sampled_from(["requested", "clairvoyant", "ave2", "ave1", "e-loss", "user-ratio"])
    estimate = data.draw(st.one_of(named, predictions(workload)))
    rules = {"estimate": estimate, "correction": "kill"}
    killed_as_said(simulate(workload, scheduler, cluster=cluster, **rules))


@settings(SLOW, max_examples=80)
@given(st.data(), workloads(), SCHEDULERS)
def test_kill_on_pools(data: st.DataObject, workload: Workload, scheduler: str) -> None:
    named = st.sampled_from(["requested", "clairvoyant", "ave2", "ave1", "e-loss", "user-ratio"])
    estimate = data.draw(st.one_of(named, predictions(workload)))
    killed_as_said(simulate(workload, scheduler, estimate=estimate, correction="kill"))


@pytest.mark.slow
def test_kill_by_hand() -> None:
    for scheduler in ("easy", "prb", "conservative"):
        for where in ({"cluster": TWO}, {"processors": 6}):
            result = simulate(FEW, scheduler, estimate=[4, 20, 5, 1], correction="kill", **where)
            assert result.run_time.tolist() == [4, 10, 5, 1]
            assert result.killed.tolist() == [True, False, False, True]
            killed_as_said(result)
    clairvoyant = simulate(FEW, "prb", estimate="clairvoyant", correction="kill", cluster=TWO)
    assert not clairvoyant.killed.any()


@settings(SLOW, max_examples=100)
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
    for where in ({"cluster": TWO}, {"processors": 6}):
        with pytest.raises(HpcgymError, match="'next-second' is for dispatchers only"):
            simulate(FEW, "easy", correction="next-second", **where)


@pytest.mark.parametrize("where", [{"cluster": TWO}, {"processors": 6}], ids=["nodes", "pool"])
def test_a_dispatcher_is_the_same_however_it_is_given(where: dict[str, Any]) -> None:
    """Where predictions are too short, and so corrections are seen."""
    rules = {"estimate": [1, 2, 5, 2], **where}
    ways: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("prb",), {}),
        ((), {"dispatcher": "prb"}),
        (("easy",), {"dispatcher": "prb"}),
        ((Scheduler(dispatcher="prb"),), {}),
        ((Scheduler().but(dispatcher="prb"),), {}),
        ((Scheduler(),), {"dispatcher": "prb"}),
        ((Keeps("prb"),), {}),
        ((), {"dispatcher": Keeps("prb")}),
    ]
    results = [simulate(FEW, *one, **rules, **more) for one, more in ways]
    assert {result.scheduler.correction for result in results} == {"next-second"}
    told = [keeps.told for keeps in (results[-2].dispatcher, results[-1].dispatcher)]
    assert told[0] == told[1]
    assert told[0][1]["running_end"] == [4, 4]
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


@settings(SLOW, max_examples=80)
@given(st.data(), machines(), st.integers(0, 3), st.sampled_from(["prb", "sjf-list"]))
def test_what_a_view_starts_fits_on_random_nodes_too(
    data: st.DataObject, cluster: Cluster, seed: int, name: str
) -> None:
    """Whether the next job fits depends on the nodes of those before it: they must be the same."""
    workload = data.draw(workloads_for(cluster))
    hpcgym.validate_schedule(simulate(workload, name, cluster=cluster, allocation=f"random:{seed}"))


@pytest.mark.parametrize("name", ["prb", "sjf-list"])
def test_the_same_seed_gives_the_same_nodes(name: str) -> None:
    workload = load_workload("eurora:jobs=120,seed=1,load=3")
    drawn = [
        simulate(workload, name, cluster="eurora", allocation=f"random:{seed}")
        for seed in (1, 1, 2)
    ]
    one, same, other = drawn
    assert one.start.tolist() == same.start.tolist()
    assert units_on_nodes(one) == units_on_nodes(same)
    assert units_on_nodes(one) != units_on_nodes(other)
    for result in (one, other):
        hpcgym.validate_schedule(result)


def naming(view: PassView) -> Any:
    """Start what fits in the order of submission, on nodes that it names: those of the view."""
    return view.placed(np.arange(len(view.job)))


@pytest.mark.parametrize("allocation", ["random:1", "weighted", "hybrid"])
def test_naming_nodes_is_as_leaving_them_to_the_allocation(allocation: str) -> None:
    workload = load_workload("eurora:jobs=120,seed=1,load=3")
    rules = {"cluster": "eurora", "allocation": allocation}
    named, left = simulate(workload, naming, **rules), simulate(workload, "fcfs-list", **rules)
    assert named.start.tolist() == left.start.tolist()
    assert units_on_nodes(named) == units_on_nodes(left)


def test_a_view_by_hand_knows_what_waits() -> None:
    """As in `test_reference_nodes.py`: the first job leaves the node of four to the second."""
    queue = {"submit": [0, 0], "duration": [9, 9], "units": [1, 1], "per_unit": [[1, 1], [3, 1]]}
    machine = [[4, 2], [2, 4]]
    view = PassView.of(0, ("core", "mem"), machine, queue=queue, allocation=WEIGHTED)
    assert [(place, node.tolist()) for place, node in view.placed([0, 1])] == [(0, [1]), (1, [0])]
    # once that has started, nobody else waits
    ((_, node),) = view.placed([0], after=[1])
    assert node.tolist() == [0]
    assert view.plan([0, 1]).node.tolist() == [1, 0]


def test_models_draw_random_nodes_for_each_job() -> None:
    """Jobs one after the other on eight empty nodes; in one order all would have the same one."""
    pytest.importorskip("ortools")
    workload = jobs_of([(20 * k, 10, 10, 1, 2) for k in range(12)])
    cluster = Cluster(groups=(NodeGroup("a", 8, {"core": 2}),))
    for name in ("cph-0", "cp-3"):
        found = simulate(workload, name, cluster=cluster, allocation="random:1")
        expected = simulate(workload, "prb", cluster=cluster, allocation="random:1")
        assert units_on_nodes(found) == units_on_nodes(expected)
        assert len({node for cells in units_on_nodes(found) for node in cells}) > 3


@pytest.mark.parametrize("name", ["cph-0", "cp-0"])
def test_jobs_beyond_the_window_draw_orders_of_their_own(name: str) -> None:
    pytest.importorskip("ortools")
    from hpcgym.baselines.cp.solve import Limits

    keeps = Keeps(find_dispatcher(name))
    keeps.ask.limits = Limits(jobs=1)  # type: ignore[attr-defined]
    cluster = Cluster(groups=(NodeGroup("a", 8, {"core": 8}),))
    workload = jobs_of([(0, 10, 10, 1, 1)] * 6)
    found = simulate(workload, keeps, cluster=cluster, allocation="random:1")
    expected = simulate(workload, "prb", cluster=cluster, allocation="random:1")
    assert keeps.ask.log[0]["considered"] == 1  # type: ignore[attr-defined]
    assert found.start.tolist() == [0] * 6
    assert units_on_nodes(found) == units_on_nodes(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pcp20", "hcp19", "cph-3", "cp-3"])
def test_models_and_random_nodes_go_together(name: str) -> None:
    """PCP'20 and HCP'19 fill the fullest nodes first, whatever the allocation; the others draw."""
    pytest.importorskip("ortools")
    rng = np.random.default_rng(3)
    submit, run = np.sort(rng.integers(0, 600, 16)), rng.integers(20, 400, 16)
    units, core = rng.integers(1, 5, 16), rng.integers(1, 4, 16)
    rows = zip(*(c.tolist() for c in (submit, run, 2 * run, units, core)), strict=True)
    workload = replace(jobs_of(list(rows)), processors=16)
    four = Cluster(groups=(NodeGroup("a", 4, {"core": 4}),))
    allocations = ("random:1", "random:1", "random:2", "best-fit")
    results = [simulate(workload, name, cluster=four, allocation=kind) for kind in allocations]
    assert any(entry["variables"] for entry in results[0].dispatcher.log)
    for result in results:
        hpcgym.validate_schedule(result)
    schedules = [(result.start.tolist(), units_on_nodes(result)) for result in results]
    one, same, other, fullest = schedules
    assert one == same
    assert (one == other == fullest) == (name in ("pcp20", "hcp19"))
