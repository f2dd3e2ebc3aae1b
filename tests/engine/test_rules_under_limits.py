"""Rules of the queue where jobs have nodes of their own: beside the slow simulator, and by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from few_jobs import few_jobs
from restrictions import DRAWN

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup, NodePower
from hpcgym.scheduler.limits import PowerCap
from hpcgym.workload.model import Workload

pytestmark = DRAWN


# --- By hand --------------------------------------------------------------------------------------

NODES = Cluster(groups=(NodeGroup("a", 3, {"core": 2}, NodePower(10.0, 100.0)),))
#: Two of three nodes may be busy.
CAP = PowerCap(210.0)


def jobs(**columns: list[int]) -> Workload:
    """Return four jobs of one node each, which two users submit at once."""
    given = {
        "job_number": [1, 2, 3, 4],
        "submit_time": [0, 0, 0, 0],
        "run_time": [10, 20, 10, 5],
        "requested_time": [20] * 4,
        "requested_processors": [2, 1, 2, 2],
        "user_id": [1, 1, 1, 2],
    }
    return Workload.from_columns({**given, **columns}, processors=6)


@pytest.mark.parametrize(
    ("quota", "limits", "starts"),
    [
        # two at once: the head is job 3, then job 4
        (None, [CAP], [0, 0, 10, 20]),
        # job 2 is passed over, and job 4 has its power up to 5 s, then nobody up to 10 s
        ("user:jobs=1", [CAP], [0, 10, 30, 0]),
        # it counts the processors that jobs ask for: jobs 1 and 2, then 2 and 3
        ("user:processors=3", [CAP], [0, 0, 10, 20]),
        ("user:processors=3", [], [0, 0, 10, 0]),
        ("all:jobs=1", [], [0, 10, 30, 40]),
    ],
)
def test_quotas_by_hand(quota: str | None, limits: list[Any], starts: list[int]) -> None:
    result = hpcgym.simulate(jobs(), cluster=NODES, limits=limits, quota=quota)
    assert result.start.tolist() == starts
    hpcgym.validate_schedule(result)


@pytest.mark.parametrize(
    ("dependencies", "submits", "starts"),
    [
        ("after", [0, 0, 20, 27], [0, 0, 20, 27]),
        ("closed-loop", [0, 0, 20, 22], [0, 0, 20, 22]),
    ],
)
def test_dependencies_by_hand(dependencies: str, submits: list[int], starts: list[int]) -> None:
    """Job 3 follows job 2, and job 4 job 1, 12 s after its end or as late as the log says."""
    follow = jobs(submit_time=[0, 0, 0, 27], preceding_job=[-1, -1, 2, 1], think_time=[0, 0, 0, 12])
    result = hpcgym.simulate(follow, cluster=NODES, limits=[CAP], dependencies=dependencies)
    assert result.workload.submit_time.tolist() == submits
    assert result.start.tolist() == starts
    hpcgym.validate_schedule(result)


@pytest.mark.parametrize("rules", [{"dependencies": "after"}, {"quota": "user:submitted=2"}])
def test_who_comes_as_a_cap_kills(rules: dict[str, Any]) -> None:
    """At 5 s it leaves one node busy, and kills job 2: job 3 comes, and waits for job 1."""
    sudden = PowerCap(120.0, start=5, announced=5, kills=True)
    follow = jobs(user_id=[1, 1, 1, 1], preceding_job=[-1, -1, 2, 3], think_time=[0, 0, 0, 0])
    result = hpcgym.simulate(follow, cluster=NODES, limits=[sudden], **rules)
    assert result.workload.submit_time.tolist()[:3] == [0, 0, 5]
    assert result.start.tolist() == [0, 0, 10, 20]
    assert result.end.tolist() == [10, 5, 20, 25]
    hpcgym.validate_schedule(result)


def test_a_function_by_hand() -> None:
    """It sees what limits let start, and its best job starts first."""
    seen, rules = [], {"cluster": NODES, "limits": [CAP], "backfill": "none"}

    def last_first(view: Any) -> Any:
        seen.append((view.time, view.job.tolist(), view.allowed.tolist(), view.units.tolist()))
        return view.job

    result = hpcgym.simulate(jobs(), **rules, policy=last_first)
    assert result.start.tolist() == [10, 5, 0, 0]
    assert seen == [
        (0, [0, 1, 2, 3], [True] * 4, [1] * 4),
        (5, [0, 1], [True] * 2, [1] * 2),
        (10, [0], [True], [1]),
    ]


@pytest.mark.parametrize(
    ("backfill", "requested", "starts"),
    [
        ("easy", 20, [0, 20, 0]),  # it ends when job 2 is to start, and leaves a node
        ("until-shadow", 20, [0, 20, 20]),
        ("until-shadow", 19, [0, 20, 0]),
        ("easy", 21, [0, 20, 0]),
        ("until-shadow", 21, [0, 20, 20]),
    ],
)
def test_until_shadow_by_hand(backfill: str, requested: int, starts: list[int]) -> None:
    """Job 2 needs two nodes, and has one of four and no power before job 1 ends at 20 s."""
    three = few_jobs(8, [0, 0, 0], [20, 10, requested], [4, 4, 2])
    nodes = Cluster(groups=(replace(NODES.groups[0], nodes=4),))
    cap = PowerCap(310.0)  # three of four may be busy
    result = hpcgym.simulate(three, cluster=nodes, limits=[cap], backfill=backfill)
    assert result.start.tolist() == starts
    hpcgym.validate_schedule(result)
