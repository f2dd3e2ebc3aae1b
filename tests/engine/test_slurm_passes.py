"""When passes of ``backfill="slurm"`` come, and whom they look at: by hand, and as the slow one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from same_results import beside_reference

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload


def jobs(processors: int, *rows: tuple[int, int, int], **columns: list[int]) -> Workload:
    """Return jobs that come, need and request so much."""
    submit, needs, times = zip(*rows, strict=True)
    given = {"submit_time": submit, "requested_processors": needs}
    given |= {"run_time": times, "requested_time": times, **columns}
    return Workload.from_columns(given, processors=processors)


def starts(workload: Workload, slow: dict[str, Any] | None = None, **rules: Any) -> list[int]:
    """Return when jobs start, which the slow simulator must say, too."""
    found = hpcgym.simulate(workload, **rules)
    same = {name: rules[name] for name in ("policy", "backfill") if name in rules}
    expected = simulate_pool(jobs_of(workload), workload.processors, **same | (slow or {}))
    assert found.start.tolist() == [job.start for job in expected]
    return found.start.tolist()


def test_the_second_of_a_backfill_pass_counts_as_after_it() -> None:
    """Job 0 comes with the pass at 0 s. So there is one at 30 s, and the next one at 60 s."""
    late = jobs(4, (0, 2, 1000), (31, 3, 1000), (31, 1, 10))
    assert starts(late, backfill="slurm") == [0, 1000, 60]
    # nothing happened at 30 s, so that none comes at 60 s
    later = jobs(4, (0, 2, 1000), (65, 3, 1000), (65, 1, 10))
    assert starts(later, backfill="slurm") == [0, 1000, 65]


#: A pass at an event looks at two jobs, and at 60 s, with no event, three of five are left.
FEW = "slurm:default_queue_depth=1+sched_interval=3600"
FIVE = [(0, 1, 1000), *[(31, 1, 1000)] * 5]


@pytest.mark.parametrize("count", [4, 5])
def test_jobs_waited_if_they_did_before_the_pass(count: int) -> None:
    """The passes at 60 s start all that wait. All the same one comes at 90 s, then at 120 s.

    Of four jobs none is left for the backfill pass at 60 s, of five one is.
    """
    last = (91, 8, 1000), (91, 1, 10)
    found = starts(jobs(8, *FIVE[: 1 + count], *last), backfill=FEW)
    assert found[: 1 + count] == [0, 31, 31, 60, 60, 60][: 1 + count]
    assert found[-1] == 120


@pytest.mark.parametrize("count", [3, 4, 5])
def test_on_nodes_too(count: int) -> None:
    workload = jobs(8, *FIVE[: 1 + count], (91, 8, 1000), (91, 1, 10))
    rules = {"policy": "fcfs", "backfill": FEW, "backfill_order": "fcfs", "threshold": None}
    rules |= {"estimate": "requested", "correction": "requested"}
    cluster = Cluster(groups=(NodeGroup("n", 8, {"core": 1}),))
    beside_reference(workload, {**rules, "allocation": "first-fit", "hold": None}, cluster)


def test_a_backfill_pass_without_an_event_comes_behind_a_pass_in_order() -> None:
    """At 60 s the pass in order starts two jobs, and the backfill pass looks at one."""
    assert starts(jobs(8, *FIVE), backfill=f"{FEW}+bf_max_job_test=1") == [0, 31, 31, 60, 60, 60]


@pytest.mark.slow
def test_a_backfill_pass_without_an_event_begins_with_preemption() -> None:
    """At 5 s job 2 is first of its queue, and no room can be made for it; at 30 s job 3 is.

    Job 1 cannot be stopped. Job 3 stops job 0.
    """
    queue = [1, 3, 2, 2]
    two = jobs(4, (0, 2, 1000), (0, 2, 1000), (5, 4, 100), (5, 2, 100), queue=queue)
    rules = {
        "backfill": "slurm",
        "policy": "processors if wait < 20 else -processors",
        "preemption": "queue:2>1",
    }

    def score(job: Any, now: int) -> float:
        return job.processors if now - job.submit < 20 else -job.processors

    slow = {"policy": score, "preemption": (queue, {(2, 1)}, "requeue")}
    assert starts(two, slow, **rules) == [1100, 0, 1000, 30]


def test_who_exceeds_a_quota_counts_among_the_first_and_not_for_its_user() -> None:
    """Job 1 exceeds the quota, job 2 does not fit, and job 3 could start behind it."""
    users = [1, 1, 2, 1]
    few = jobs(
        4, (0, 2, 100), (0, 1, 10), (0, 3, 100), (0, 1, 10), user_id=users, queue=[1, 1, 2, 2]
    )
    slow = {"quotas": [([1, 1, None, None], 1, math.inf)]}
    rules = {"quota": "queue=1:jobs=1"}
    assert starts(few, slow, **rules, backfill="slurm:bf_max_job_test=2")[3] == 110
    assert starts(few, slow, **rules, backfill="slurm:bf_max_job_test=3")[3] == 0
    assert starts(few, slow, **rules, backfill="slurm:bf_max_job_user=1")[3] == 0
