"""The plan of each backfill pass under Slurm's rules: told by the engine as by the reference."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from node_strategies import ALLOCATIONS, machines, partitioned_cases, workloads_for
from quota_strategies import quotas
from restrictions import DRAWN, times, with_numbers
from strategies import OF_USERS, PLANS, POLICY, with_few_looks, workloads

import hpcgym
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.reference.nodes import NodeSimulation
from hpcgym.reference.pool import PoolSimulation
from hpcgym.simulation import by_reference
from hpcgym.simulation.continued import again
from hpcgym.simulation.plans import with_whole_plans
from hpcgym.workload.model import Workload

#: Row of a job that waits and has a reservation -> its start as planned [s].
Plan = dict[int, int]
PREDICTED: list[dict[str, Any]] = [
    *({}, {}, {"estimate": "clairvoyant"}),
    {"estimate": "ave2", "correction": "incremental"},
]


def slow_plans(workload: Workload, **rules: Any) -> dict[int, Plan]:
    """Time of a backfill pass [s] -> its plan, by the reference."""
    plans: dict[int, Plan] = {}

    def note(simulation: PoolSimulation, now: int) -> None:
        if simulation.last_planned == now:
            plan = {job.number: job.reservation for job in simulation.queue}
            plans[now] = {number: start for number, start in plan.items() if start >= 0}

    class OnPool(PoolSimulation):
        def schedule_like_slurm(self, now: int) -> None:
            super().schedule_like_slurm(now)
            note(self, now)

    class OnNodes(NodeSimulation):
        def schedule_like_slurm(self, now: int) -> None:
            super().schedule_like_slurm(now)
            note(self, now)

    with patch.multiple(by_reference, PoolSimulation=OnPool, NodeSimulation=OnNodes):
        hpcgym.simulate(workload, engine="reference", **rules)
    return plans


def check_plans(workload: Workload, **rules: Any) -> dict[int, Plan]:
    """Compare the plans of all passes, and return them; telling them changes no start."""
    slow, plans = slow_plans(workload, **rules), dict[int, Plan]()
    result = hpcgym.simulate(workload, **rules)
    simulation = with_whole_plans(again(result))
    native, plan, last = simulation.native, Plan(), -1
    while simulation.drive(passes=1):
        reserved, start = native.reserved(), native.schedule()["start"]
        planned, at = reserved["planned"], int(reserved["planned_at"][0])
        by_row = {row: int(planned[row]) for row in np.flatnonzero(planned >= 0).tolist()}
        if at == last:  # what is left of it
            assert by_row == {row: time for row, time in plan.items() if start[row] < 0}
        else:
            plans[at] = by_row
        plan, last = by_row, at
    assert simulation.schedule()["start"].tolist() == result.start.tolist()
    assert {time: plan for time, plan in plans.items() if plan} == {
        time: plan for time, plan in slow.items() if plan
    }
    return plans


@st.composite
def slurm(draw: st.DrawFn, workload: Workload) -> dict[str, Any]:
    """Return rules of Slurm, and how run times are predicted."""
    return {
        "policy": draw(st.one_of(st.just("fcfs"), POLICY)),
        "backfill": with_few_looks(draw(st.one_of(PLANS, OF_USERS)), workload),
        "threshold": draw(st.sampled_from([None, None, 100])),
        **draw(st.sampled_from(PREDICTED)),
    }


@settings(max_examples=20)
@given(st.data())
def test_plans_on_a_pool(data: st.DataObject) -> None:
    workload = data.draw(workloads(25))
    check_plans(workload, **data.draw(slurm(workload)))


@settings(max_examples=20)
@given(st.data())
def test_plans_on_nodes(data: st.DataObject) -> None:
    cluster = data.draw(machines())
    workload = data.draw(workloads_for(cluster))
    allocation = data.draw(st.sampled_from(ALLOCATIONS))
    check_plans(workload, cluster=cluster, allocation=allocation, **data.draw(slurm(workload)))


@pytest.mark.filterwarnings("ignore:.*in none of the machine's partitions")
@settings(max_examples=10)
@given(st.data())
def test_plans_on_nodes_of_partitions_and_features(data: st.DataObject) -> None:
    cluster, workload, _ = data.draw(partitioned_cases())
    check_plans(workload, cluster=cluster, **data.draw(slurm(workload)))


def drawn_on(place: str, data: st.DataObject) -> tuple[Workload, Cluster]:
    """Draw jobs, and a pool or nodes for them."""
    if place == "pool":
        log = data.draw(workloads(25))
        return log, Cluster(log.processors)
    cluster = data.draw(machines())
    return data.draw(workloads_for(cluster)), cluster


@DRAWN[0]
@pytest.mark.parametrize("place", ["pool", "nodes"])
@settings(max_examples=10)
@given(data=st.data())
def test_plans_under_quotas_and_in_windows(place: str, data: st.DataObject) -> None:
    """Of a barred job nothing is planned, of others around the windows."""
    log, cluster = drawn_on(place, data)
    log = with_numbers(log, [1, 1, 2])
    (begin, end), *_ = data.draw(times(log))
    rules = {"quota": data.draw(quotas(log))[0], "maintenance": f"{begin}/{end}"}
    some = data.draw(st.sampled_from([("quota",), ("maintenance",), ("quota", "maintenance")]))
    drawn = data.draw(slurm(log))
    if "maintenance" in some:  # into which no job may run
        drawn["correction"] = "kill"
    check_plans(log, cluster=cluster, **drawn, **{name: rules[name] for name in some})


def test_a_plan_by_hand() -> None:
    """Job 1 needs all three nodes, as job 0 ends at 600; no other ends before that."""
    jobs = few_jobs(3, [0, 1, 2, 3, 4], [200] * 5, [1, 3, 1, 2, 1], [600, 240, 900, 600, 6000])
    cluster = Cluster(groups=(NodeGroup("n", 3, {"core": 1}),))
    expected = {1: 600, 2: 840, 3: 840, 4: 1440}
    for more, left_out in (
        ("", set[int]()),
        ("+bf_max_job_test=2", {3, 4}),
        ("+bf_job_part_count_reserve=1", {2, 3, 4}),
        ("+bf_window=12", {2, 3, 4}),
    ):
        plans = check_plans(jobs, backfill=f"slurm:bf_interval=30{more}", cluster=cluster)
        assert plans[30] == {row: at for row, at in expected.items() if row not in left_out}


@pytest.mark.parametrize("place", ["pool", "nodes"])
@settings(max_examples=8)
@given(data=st.data())
def test_a_state_tells_the_plan_of_a_pass_at_its_time(place: str, data: st.DataObject) -> None:
    log, cluster = drawn_on(place, data)
    rules = {"backfill": with_few_looks(data.draw(PLANS), log), "cluster": cluster}
    result = hpcgym.simulate(log, **rules)
    for time, plan in [*slow_plans(log, **rules).items()][:30]:
        if time in log.submit_time or time in result.end:
            continue  # of which a state does not know yet
        state = hpcgym.snapshot(result, time)
        table = hpcgym.forecast(state, result.scheduler, futures=1).plan()
        rows = np.flatnonzero((log.submit_time < time) & (result.start >= time))
        assert table.job.tolist() == log.job_number[rows].tolist()
        begun = {row: time for row in rows.tolist() if result.start[row] == time}
        assert table.planned.tolist() == [(plan | begun).get(row, -1) for row in rows.tolist()]
