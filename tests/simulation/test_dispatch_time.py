"""Dispatchers that take time: their starts are late, by rules written down in a slow simulator."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from mistakes import mistakes_of
from node_strategies import machines, workloads_for
from same_results import cells_of
from strategies import predictions

import hpcgym
from hpcgym import simulate
from hpcgym.baselines.labels import describe, scheduler_name
from hpcgym.machine import Cluster
from hpcgym.reference.dispatching import LISTS, DispatchedNodes
from hpcgym.reference.jobs import node_jobs_of
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload import Workload, load_workload


def pool_jobs(rows: list[tuple[int, int, int]], processors: int = 4) -> Workload:
    """Return jobs of (submission, run time, processors) that run as long as they request."""
    return few_jobs(processors, *map(list, zip(*rows, strict=True)), name="few")


def calls_of(result: Any) -> list[tuple[int, int, list[int]]]:
    """Return of each call its time, its seconds and the jobs that it starts."""
    calls = result.dispatching
    return [
        (time, seconds, np.flatnonzero(calls.call == number).tolist())
        for number, (time, seconds) in enumerate(
            zip(calls.time.tolist(), calls.seconds.tolist(), strict=True)
        )
    ]


# --- By hand --------------------------------------------------------------------------------


def test_a_start_is_late_by_the_time_of_the_call() -> None:
    result = simulate(pool_jobs([(5, 10, 4)]), "fcfs-list", dispatch_time=3)
    assert result.start.tolist() == [8]
    assert calls_of(result) == [(5, 3, [0])]
    assert result.dispatching.decided.tolist() == [5]
    assert result.dispatching.late.tolist() == [3]
    assert result.metrics["mean_dispatch_s"] == 3
    assert "mean_dispatch_s" not in simulate(pool_jobs([(5, 10, 4)]), "fcfs-list").metrics


@pytest.mark.parametrize(
    ("given", "seconds"), [(0.2, 1), (2, 2), (2.1, 3), (3 * 0.1 * 10, 3), (np.float64(1.5), 2)]
)
def test_seconds_are_rounded_up(given: float, seconds: int) -> None:
    assert 3 * 0.1 * 10 > 3
    for takes in (given, lambda view: given):
        result = simulate(pool_jobs([(0, 10, 4)]), "fcfs-list", dispatch_time=takes)
        assert result.start.tolist() == [seconds]


def test_a_model_sees_the_view_and_may_ask_the_dispatcher() -> None:
    class Counts:
        name = "counts"
        answered = 0

        def __call__(self, view: PassView) -> list[int]:
            self.answered += 1
            return view.in_order(range(len(view.job)))

    dispatcher = Counts()
    jobs = pool_jobs([(0, 10, 2), (0, 10, 1), (30, 10, 1)])
    takes = lambda view: 10 * dispatcher.answered + len(view.job)  # noqa: E731
    result = simulate(jobs, dispatcher, dispatch_time=takes)
    assert calls_of(result) == [(0, 12, [0, 1]), (30, 21, [2])]
    assert result.start.tolist() == [12, 12, 51]


def test_measured_is_at_least_the_time_that_the_call_takes() -> None:
    def sleeps(view: PassView) -> Any:
        import time

        time.sleep(1.01)
        yield from view.in_order(range(len(view.job)))

    result = simulate(pool_jobs([(0, 10, 4)]), sleeps, dispatch_time="measured")
    assert result.start[0] >= 2
    fast = simulate(pool_jobs([(0, 10, 4)]), "fcfs-list", dispatch_time="measured")
    assert fast.start[0] >= 1  # less than a second is a second


# --- Against the slow simulator -------------------------------------------------------------


@st.composite
def late_cases(draw: st.DrawFn) -> tuple[Cluster, Workload, str, dict[str, Any], Any]:
    """A machine, jobs, a list, its rules and how long it takes with so many jobs queued."""
    cluster = draw(machines())
    workload = draw(workloads_for(cluster))
    corrections = ["requested", "incremental", "recursive-doubling", "kill"]
    rules = {
        "estimate": draw(st.one_of(st.sampled_from(["requested", "ave2"]), predictions(workload))),
        "correction": draw(st.sampled_from(corrections)),
        "allocation": draw(st.sampled_from(["first-fit", "best-fit", "worst-fit"])),
    }
    base = draw(st.sampled_from([0, 0, 1, 7, 100, 1000]))
    each = draw(st.sampled_from([0, 1, 0.5, 30]))
    return cluster, workload, draw(st.sampled_from(sorted(LISTS))), rules, (base, each)


@settings(max_examples=250)
@given(late_cases())
def test_schedules_are_those_of_the_slow_simulator(
    case: tuple[Cluster, Workload, str, dict[str, Any], tuple[float, float]],
) -> None:
    cluster, workload, name, rules, (base, each) = case
    jobs = node_jobs_of(workload, cluster.resources)
    takes = lambda queued: math.ceil(base + each * queued)  # noqa: E731
    slow = DispatchedNodes(jobs, cluster.capacity.tolist(), LISTS[name], takes, **rules)
    expected = slow.run()
    result = simulate(
        workload,
        name,
        cluster=cluster,
        dispatch_time=lambda view: base + each * len(view.job),
        **rules,
    )
    assert result.start.tolist() == [job.start for job in expected]
    assert result.end.tolist() == [job.end for job in expected]
    assert result.predicted_run_time.tolist() == [job.predicted for job in expected]
    assert cells_of(result.allocation) == [dict(job.nodes) for job in expected]
    assert calls_of(result) == [(time, took, sorted(who)) for time, took, who in slow.calls]
    hpcgym.validate_schedule(result)


# --- No time is as before -------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["prb", "sjf-list", "sdprb"]))
def test_no_time_is_the_same_as_none(data: st.DataObject, name: str) -> None:
    cluster = data.draw(machines())
    workload = data.draw(workloads_for(cluster))
    allocation = data.draw(st.sampled_from(["first-fit", "worst-fit", "random:2"]))
    rules = {"cluster": cluster, "allocation": allocation, "estimate": "ave2"}
    usual = simulate(workload, name, **rules)
    for nothing in (0, 0.0, lambda view: 0):
        result = simulate(workload, name, dispatch_time=nothing, **rules)
        assert result.start.tolist() == usual.start.tolist()
        assert [part.tolist() for part in result.allocation] == [
            part.tolist() for part in usual.allocation
        ]
        hpcgym.validate_schedule(result)


@settings(max_examples=60)
@given(
    st.data(), st.integers(0, 40), st.sampled_from(["random:0", "random:3", "weighted", "hybrid"])
)
def test_nodes_drawn_for_a_view_are_those_that_jobs_get(
    data: st.DataObject, takes: int, allocation: str
) -> None:
    """Random nodes, or by what waits, named from the view or left to the allocation: the same."""

    def naming(view: PassView) -> Any:
        return view.placed(np.arange(len(view.job)))

    def every_other(view: PassView) -> Any:
        for k, (place, nodes) in enumerate(naming(view)):
            yield (place, nodes) if k % 2 else place

    cluster = data.draw(machines())
    workload = data.draw(workloads_for(cluster))
    rules = {"cluster": cluster, "allocation": allocation, "dispatch_time": takes}
    left = simulate(workload, "fcfs-list", **rules)
    hpcgym.validate_schedule(left)
    for dispatcher in (naming, every_other):
        named = simulate(workload, dispatcher, **rules)
        assert named.start.tolist() == left.start.tolist()
        assert cells_of(named.allocation) == cells_of(left.allocation)


def test_extracts_and_pools_that_are_switched_off_go_too() -> None:
    whole = load_workload("lublin:jobs=400,processors=64,seed=2,load=1")
    lived = simulate(whole, "prb").as_workload()
    middle = int(lived.submit_time[200])
    extract = lived.extract(middle, int(lived.submit_time[320]))
    result = simulate(extract, "prb", dispatch_time=90)
    assert "beginning" in hpcgym.validate_schedule(result)
    assert (result.dispatching.call[extract.initial.running] == -1).all()
    asleep = Cluster(64, shutdown_after_s=300, boot_time_s=60, shutdown_time_s=20)
    result = simulate(whole, "prb", cluster=asleep, dispatch_time=90)
    hpcgym.validate_schedule(result)
    late = result.start - result.dispatching.decided - result.dispatching.late
    assert set(late.tolist()) - {0}
    assert late.min() == 0
    assert late.max() <= 80


# --- What is proved -------------------------------------------------------------------------


# --- How it is told -------------------------------------------------------------------------


def test_rules_tell_the_time() -> None:
    for takes, text in ((5, "5 s a call"), (0.5, "0.5 s a call"), ("measured", "time measured")):
        scheduler = Scheduler(dispatcher="prb", dispatch_time=takes)
        assert scheduler.describe()["dispatch_time"] == takes
        assert text in describe(scheduler)
        assert scheduler_name(scheduler).startswith("prb, ")
        assert scheduler_name(scheduler).endswith(text)
    assert "call" not in describe(Scheduler(dispatcher="prb", dispatch_time=0))
    assert Scheduler(dispatcher="prb", dispatch_time=max).describe()["dispatch_time"] == "max"


def called(later: int) -> tuple[str, ...]:
    """Prove a schedule by calls that take 3 s, of which one job starts so much later."""
    jobs = pool_jobs([(0, 10, 2), (1, 10, 1), (20, 10, 4)])
    result = simulate(jobs, "fcfs-list", dispatch_time=3)
    assert calls_of(result) == [(0, 3, [0]), (3, 3, [1]), (20, 3, [2])]
    return hpcgym.validate_schedule(replace(result, start=result.start + np.array([0, 0, later])))


def test_calls_are_proved() -> None:
    assert "calls" in called(0)


test_mistakes = mistakes_of(globals())
