"""Dispatchers by name and as functions: jobs that are killed, or overdue, and random nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from node_strategies import machines, workloads_for
from strategies import predictions, workloads
from test_dispatching import FEW, SLOW, TWO, Keeps, jobs_of, units_on_nodes

import hpcgym
from hpcgym import HpcgymError, simulate
from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS, find_dispatcher
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.scheduler.allocations import WEIGHTED
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload import load_workload


def killed_as_said(result: Any) -> None:
    workload = result.workload
    actual = np.minimum(workload.run_time, workload.requested_time)
    expected = np.minimum(actual, result.predicted_run_time)
    assert result.run_time.tolist() == expected.tolist()
    assert result.end.tolist() == (result.start + expected).tolist()
    assert result.killed.tolist() == (workload.run_time > expected).tolist()
    hpcgym.validate_schedule(result)


SCHEDULERS = st.sampled_from(["fcfs", "easy", "easy-sjbf", "conservative", "prb", "sdprb"])


@pytest.mark.parametrize("place", ["pool", pytest.param("nodes", marks=pytest.mark.slow)])
@settings(SLOW, max_examples=80)
@given(data=st.data(), scheduler=SCHEDULERS)
def test_kill(place: str, data: st.DataObject, scheduler: str) -> None:
    cluster = data.draw(machines()) if place == "nodes" else None
    workload = data.draw(workloads() if cluster is None else workloads_for(cluster))
    named = st.sampled_from(["requested", "clairvoyant", "ave2", "ave1", "e-loss", "user-ratio"])
    estimate = data.draw(st.one_of(named, predictions(workload)))
    rules = {"estimate": estimate, "correction": "kill"}
    killed_as_said(simulate(workload, scheduler, cluster=cluster, **rules))


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
    from hpcgym.baselines.cp.dispatcher import Limits

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
