"""What is told of quotas and partitions: by hand, and equal to what the slow simulators see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from node_strategies import node_cases, partitioned_cases, slow_jobs_and_nodes
from quota_strategies import fitted, quotas, with_queues
from strategies import cases
from test_explanation import LATE

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup, Partition
from hpcgym.explanation import waits
from hpcgym.reference.jobs import Job, jobs_of
from hpcgym.reference.nodes import NodeSimulation, hold, room_for
from hpcgym.reference.pool import Simulation, simulate_pool
from hpcgym.workload.model import Workload

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions"),
    pytest.mark.filterwarnings("ignore:.*no job falls under these quotas"),
]
TOLD = ("quota", "processors", "nodes", "partition")


class Watched(Simulation):
    """A slow simulation that counts, from pass to pass, what hinders the jobs in its queue."""

    def schedule(self, now: int) -> None:
        if not hasattr(self, "seconds"):
            self.seconds = {name: np.zeros(len(self.jobs), np.int64) for name in TOLD}
            self.hindered: list[tuple[int, str]] = []
            self.since = now
        for number, name in self.hindered:
            self.seconds[name][number] += now - self.since
        super().schedule(now)
        told = [(job.number, self.hindrance(job, now)) for job in self.queue]
        self.hindered, self.since = [(number, name) for number, name in told if name], now

    def hindrance(self, job: Job, now: int) -> str:
        if self.barred(job):
            return "quota"
        return "processors" if job.processors > self.free(now) else ""


class WatchedNodes(Watched, NodeSimulation):
    """The same on nodes."""

    def hindrance(self, job: Any, now: int) -> str:
        found = super().hindrance(job, now)
        if found or self.alike:
            return found
        free = self.free_nodes(now)
        if sum(hold(node, job.demand) for node in free) < job.units:
            return "nodes"
        return "partition" if room_for(job, free) < job.units else ""


def _same(result: Any, slow: Watched, pick: int) -> Any:
    starts = [job.start for job in slow.run()]
    assert result.start.tolist() == starts
    told = waits(result)
    for name in TOLD:
        assert told[name].tolist() == slow.seconds[name].tolist()
    assert (told.sum(axis=1) == result.wait).all()
    job = pick % len(starts)
    found = hpcgym.explain(result, job, most=0)
    assert found.waited_for == {name: s for name, s in told.loc[job].items() if s}
    seconds = slow.seconds["quota"][job]
    assert seconds == 0 or any("it would have exceeded a quota" in line for line in found.sentences)
    return found


def _numbered(workload: Workload) -> Workload:
    return workload.with_columns(job_number=np.arange(len(workload)))


QUEUES = st.lists(st.integers(1, 2), min_size=1, max_size=5)


@settings(max_examples=200)
@given(st.data(), cases(25), QUEUES, st.integers(0, 100))
def test_pools(data: Any, case: tuple[Workload, Any], queues: list[int], pick: int) -> None:
    workload, rules = _numbered(with_queues(case[0], queues)), fitted(case[1])
    text, slow = data.draw(quotas(workload))
    result = hpcgym.simulate(workload, quota=text, **rules)
    given = {**rules, "policy_estimate": "requested", "quotas": slow}
    found = _same(result, Watched(jobs_of(workload), workload.processors, **given), pick)
    if rules["policy"] in LATE or rules["backfill_order"] in LATE:
        return  # they count from the first submission of all
    job = found.job
    for number, delay in hpcgym.explain(result, job).others["delay"].items():
        left = [row for row in range(len(workload)) if row != number]
        words = {**rules, "quotas": [([keys[row] for row in left], *most) for keys, *most in slow]}
        if not isinstance(rules["estimate"], str):
            words["estimate"] = [rules["estimate"][row] for row in left]
        jobs = jobs_of(workload)
        alone = simulate_pool([jobs[row] for row in left], workload.processors, **words)
        assert int(result.start[job]) - alone[job - (number < job)].start == delay


@settings(max_examples=200)
@given(
    st.data(),
    st.one_of(node_cases(15), partitioned_cases()),
    QUEUES,
    st.booleans(),
    st.integers(0, 100),
)
def test_nodes(
    data: Any, case: tuple[Cluster, Workload, Any], queues: list[int], kept: bool, pick: int
) -> None:
    cluster, workload, rules = case[0], _numbered(with_queues(case[1], queues)), fitted(case[2])
    text, slow = data.draw(quotas(workload)) if kept else (None, [])
    result = hpcgym.simulate(workload, cluster=cluster, quota=text, **rules)
    jobs, capacity = slow_jobs_and_nodes(cluster, workload)
    given = {"passes": "per-timestamp", "policy_estimate": "requested", "quotas": slow, **rules}
    _same(result, WatchedNodes(jobs, capacity, **given), pick)


# --- By hand --------------------------------------------------------------------------------------


def four(**columns: list[int]) -> Workload:
    """Return jobs 1 to 4 of 10 s on 2 of 8 processors each, all submitted at once by one user."""
    given = {
        "job_number": [1, 2, 3, 4],
        "submit_time": [0] * 4,
        "run_time": [10] * 4,
        "requested_time": [10] * 4,
        "requested_processors": [2] * 4,
        "user_id": [1] * 4,
    }
    return Workload.from_columns({**given, **columns}, processors=8)


def test_the_quota_is_named() -> None:
    result = hpcgym.simulate(four(), quota="user:jobs=2")
    found = hpcgym.explain(result, 4)
    assert found.waited_for == {"quota": 10}
    assert "It waited for 10 s because it would have exceeded a quota, user:jobs=2." in str(found)
    assert found.passes["quotas"].tolist() == ["user:jobs=2", ""]
    assert waits(result)["quota"].tolist() == [0, 0, 10, 10]


def test_two_quotas_are_told_apart() -> None:
    jobs = four(run_time=[10, 20, 10, 10], requested_time=[10, 20, 10, 10], queue=[1, 1, 2, 2])
    result = hpcgym.simulate(jobs, quota="queue=1:jobs=1; all:jobs=1")
    assert result.start.tolist() == [0, 10, 30, 40]
    found = hpcgym.explain(result, 2)
    assert "exceeded a quota: queue=1:jobs=1 for 10 s, all:jobs=1 for 10 s." in str(found)
    assert "exceeded a quota, all:jobs=1." in str(hpcgym.explain(result, 4))


def test_the_first_of_those_that_may_start_is_the_head() -> None:
    """3 wants all from 50 s on; 2 is passed over while 1 runs, and 4 would delay 3."""
    jobs = four(
        user_id=[1, 1, 2, 3],
        requested_processors=[6, 1, 8, 1],
        run_time=[50, 10, 10, 90],
        requested_time=[50, 10, 10, 90],
        submit_time=[0, 1, 0, 0],
    )
    jobs = jobs.take(np.argsort(jobs.submit_time, kind="stable"))
    result = hpcgym.simulate(jobs, "easy", quota="user:jobs=1")
    assert dict(zip(result.workload.job_number.tolist(), result.start.tolist(), strict=True)) == {
        1: 0,
        3: 50,
        4: 60,
        2: 60,
    }
    told = waits(result)
    reasons = {job: {name: s for name, s in told.loc[job].items() if s} for job in (2, 3, 4)}
    assert reasons[2] == {"quota": 49, "processors": 10}
    assert reasons[3] == {"processors": 50}
    assert reasons[4] == {"reservation": 50, "processors": 10}
    assert hpcgym.explain(result, 3).passes["head"].tolist() == [3, 3, 4]


def test_full_partitions() -> None:
    """1 has both nodes of its partition for 50 s; 2 waits for one, though others are free."""
    machine = Cluster(
        groups=(NodeGroup("n", 4, {"core": 2}),),
        partitions=(Partition("small", (0, 1)), Partition("rest", (2, 3))),
    )
    columns = {
        "partition": [1, 1, 2, 2],
        "requested_processors": [4, 2, 2, 1],
        "run_time": [50, 10, 10, 10],
        "requested_time": [50, 10, 10, 10],
    }
    jobs = replace(four(**columns), header={"Partition": ["1 small", "2 rest"]})
    result = hpcgym.simulate(jobs, "easy", cluster=machine)
    assert result.start.tolist() == [0, 50, 0, 0]
    found = hpcgym.explain(result, 2)
    assert found.waited_for == {"processors": 10, "partition": 40}
    assert "too few of the nodes with room for it were in its partition" in str(found)
