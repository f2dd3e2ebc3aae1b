"""Schedules of jobs that stop others, worked out by hand."""

from __future__ import annotations

import math
from functools import partial

import pytest
from by_hand import Cases, check, each_way
from by_hand import add as add_case
from few_jobs import few_jobs
from predictors import Told
from preemption_strategies import urgent

from hpcgym import simulate, validate_schedule
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.scheduler.policies import FairShare

pytestmark = pytest.mark.filterwarnings("ignore:.*EASY's reservation is of named nodes")


CASES: Cases = {}
add = partial(add_case, CASES)


# at 5 s, when nothing else happens, job 1 has run for 5 s; job 0 goes on
add("who is exempt", urgent(), [0, 0, 1, 10], preemption="queue:2>1,exempt=20")
add(
    "who is exempt is stopped later",
    urgent(requested_processors=[1, 2, 1, 2]),
    [0, 10, 1, 5],
    preemption="queue:2>1,exempt=1=5",
    expected={"restarts": [0, 1, 0, 0], "lost_core_seconds": [0, 10, 0, 0]},
)
# from 2 s on jobs 1 and 2 have 4 s; job 3 starts when they have gone
add(
    "who is stopped has grace time",
    urgent(run_time=[20, 10, 10, 5], requested_time=[20, 10, 10, 5]),
    [0, 11, 11, 6],
    preemption="queue:2>1,grace=4",
    expected={"restarts": [0, 1, 1, 0], "lost_core_seconds": [0, 12, 5, 0]},
)
# by 10 s job 1 has ended by itself, and job 2 not yet
add(
    "who ends within its grace time has run",
    urgent(),
    [0, 0, 10, 10],
    preemption="queue:2>1,grace=8",
    expected={"restarts": [0, 0, 1, 0], "lost_core_seconds": [0, 0, 9, 0]},
)
add(
    "who has no grace time runs on until the other has gone",
    urgent(queue=[1, 3, 1, 2]),
    [0, 0, 1, 6],
    preemption="queue:2>1;2>3,cancel,grace=1=4",
    expected={"end": [10, 6, 6, 11], "cancelled": [False, True, True, False]},
)
# job 4 would fit without job 1, which leaves for job 3: it stops nobody else
add(
    "who waits for a job that leaves stops no other",
    urgent(
        submit_time=[0, 0, 2, 3],
        requested_processors=[2, 2, 2, 1],
        run_time=[10, 10, 5, 5],
        requested_time=[10, 10, 5, 5],
        queue=[1, 1, 2, 3],
    ),
    [0, 11, 6, 10],
    preemption="queue:2>1;3>1,grace=4",
    expected={"restarts": [0, 1, 0, 0]},
)
# job 1 would fit beside job 0, which leaves for job 2; but then it would have to leave too, while
# job 0, which is first in the queue again, starts, and so on for ever (found by scripts/fuzz)
add(
    "no job of a lower level takes the place of those that leave",
    urgent(
        submit_time=[0, 13, 13],
        requested_processors=[1, 2, 4],
        run_time=[30, 16, 16],
        requested_time=[46, 57, 16],
        queue=[1, 1, 2],
    ),
    [35, 35, 19],
    preemption="queue:2>1,grace=6",
    expected={"restarts": [1, 0, 0], "lost_core_seconds": [19, 0, 0]},
)
# job 1, which only job 3 may stop, would be in the way of job 2, and job 0 then in that of job 3
add(
    "nor does one that others may stop",
    urgent(
        submit_time=[0, 1, 1, 1],
        requested_processors=[2, 2, 4, 4],
        run_time=[30, 30, 5, 5],
        requested_time=[30, 30, 5, 5],
        queue=[1, 2, 3, 4],
    ),
    [16, 16, 6, 11],
    preemption="queue:3>1;4>2,grace=5",
)
# job 3 needs 3 processors; job 0 goes on, and 1 and 2 begin anew once it has ended, at 7 s
for mode, starts, expected in (
    (
        *("requeue", [0, 7, 7, 2]),
        {"end": [10, 17, 17, 7], "restarts": [0, 1, 1, 0], "lost_core_seconds": [0, 4, 1, 0]}
        | {"wait": [0, 7, 6, 0]},
    ),
    (
        *("cancel", [0, 0, 1, 2]),
        {"end": [10, 2, 2, 7], "cancelled": [False, True, True, False]}
        | {"killed": [False, True, True, False]},
    ),
    (  # they have run for 2 s and 1 s, and go on for 8 s and 9 s
        *("suspend", [0, 0, 1, 2]),
        {"end": [10, 15, 16, 7], "suspended": [0, 5, 5, 0], "wait": [0, 5, 5, 0]}
        | {"run_time": [10, 10, 10, 5], "bsld": [1.0, 1.5, 1.5, 1.0], "killed": [False] * 4}
        | {"restarts": [0] * 4, "lost_core_seconds": [0] * 4},
    ),
):
    stops = {"preemption": f"queue:2>1,{mode}", "expected": expected}
    add(f"who has run longest, {mode}", urgent(), starts, **stops)
# job 0 has all four processors, job 1 takes one of them, and job 2 gets none. When job 1 has ended
# job 0 goes on, though job 2 waits. Where it is queued again job 3 is backfilled before 13 s
TAKEN = urgent(requested_processors=[4, 1, 1, 1], queue=[1, 2, 1, 1], submit_time=[0, 3, 4, 5])
ends = {"end": [20, 13, 30, 25]}
add("others", TAKEN, [0, 3, 20, 20], preemption="queue:2>1,suspend", expected=ends)
add("others where all is given up", TAKEN, [13, 3, 23, 5], preemption="queue:2>1")
# job 2 takes two of the four processors of job 0, and two are free. At 20 s job 3 needs three, and
# has to wait. So job 4, which is behind it in its queue and needs two, gets none, though it would
# end before job 3 can start: it starts when job 3 has ended
SUSPENDED = few_jobs(
    6, [0, 0, 10, 20, 20], [100, 500, 50, 10, 5], [4, 2, 2, 3, 2], queue=[1, 3, 2, 2, 2]
)
add(
    "who may stop a suspended job does not get what it has behind the first",
    *(SUSPENDED, [0, 0, 10, 60, 70]),
    preemption="queue:2>1,suspend",
    backfills=("none", "easy", "depth:3", "slurm"),
)
# user 1 has used 15 core s by 5 s, when job 2 stops job 0, and user 2 only 4 core s. So job 4 comes
# before jobs 0 and 3. A suspended job goes on before, and is charged at its end
CHARGED = few_jobs(
    *(4, [0, 0, 5, 6, 6], [10, 4, 5, 5, 5], [3, 1, 4, 4, 4]),
    user_id=[1, 2, 3, 1, 2],
    queue=[1, 1, 2, 1, 1],
)
for mode, starts in (
    ("requeue", [15, 0, 5, 25, 10]),
    ("cancel", [0, 0, 5, 15, 10]),
    ("suspend", [0, 0, 5, 20, 15]),
):
    by_usage = {"policy": "fairshare", "fair_share": FairShare(math.inf), "slow": False}
    add(f"who is charged, {mode}", CHARGED, starts, preemption=f"queue:2>1,{mode}", **by_usage)
# job 1 takes the cores of job 0 and finds the memory that is left; job 2 does not. It may stop job
# 0, too, and waits until it has ended
MEMORY = few_jobs(
    *(2, [0, 3, 4], [10, 5, 5], [2, 2, 1]),
    queue=[1, 2, 2],
    units=[1] * 3,
    per_unit={"core": [2, 2, 1], "mem": [5, 3, 4]},
)
add(
    "suspended jobs keep memory",
    *(MEMORY, [0, 3, 15]),
    cluster=Cluster(groups=(NodeGroup("a", 1, {"core": 2, "mem": 8}),)),
    preemption="queue:2>1,suspend",
    expected={"end": [15, 8, 20]},
)
# nobody waits in the queue from 100 s on, so the next look is due at 520 s only
LOOKS = few_jobs(10, [0, 10, 100, 515], [1000, 500, 1000, 60], [8, 4, 3, 1], queue=[1, 2, 1, 1])
looks = {"backfill": "slurm", "expected": {"suspended": [500, 0, 0, 0]}}
add("suspended jobs do not make slurm look", LOOKS, preemption="queue:2>1,suspend", **looks)
# job 2 may stop both; job 0 is of the lower level, and goes though it ran longer
LEVELS = few_jobs(4, [0, 1, 2], [10, 10, 5], [2, 2, 2], queue=[1, 2, 3])
lost = {"restarts": [1, 0, 0]}
add("the lowest level first", LEVELS, [7, 1, 2], preemption="queue:3>2>1", expected=lost)
ROOM = urgent(requested_processors=[1, 1, 1, 1])
lost = {"restarts": [0] * 4}
add("who fits stops nobody", ROOM, [0, 0, 1, 2], preemption="queue:2>1", expected=lost)
# job 0 cannot be stopped, and has one of the four processors that job 3 needs. Once it has ended,
# with job 1, only job 2 is left to be stopped
IN_VAIN = urgent(requested_processors=[1, 2, 1, 4], queue=[2, 1, 1, 2])
lost = {"restarts": [0, 0, 1, 0]}
add("who would not fit", IN_VAIN, [0, 0, 15, 10], preemption="queue:2>1", expected=lost)
# job 3 waits for job 0 to end; job 4 of its queue stops nobody before that
BARS = few_jobs(4, [0, 0, 1, 2], [10, 20, 5, 5], [1, 3, 4, 2], queue=[2, 1, 2, 2])
lost = {"restarts": [0, 1, 0, 0]}
barred = {"preemption": "queue:2>1", "backfill": "none", "expected": lost}
add("one that cannot start bars its group", BARS, [0, 20, 10, 15], **barred)
# job 2 needs the gpu of node 1, on which job 1 is, and job 0 on node 0 goes on
IN_THE_WAY = few_jobs(
    *(4, [0, 0, 3], [10, 10, 4], [2, 2, 1]),
    queue=[1, 1, 2],
    units=[2, 2, 1],
    per_unit={"core": [1] * 3, "gpu": [0, 0, 1]},
)
GPU = Cluster(groups=(NodeGroup("a", 1, {"core": 2}), NodeGroup("b", 1, {"core": 2, "gpu": 1})))
add(
    "only what is in the way is stopped",
    *(IN_THE_WAY, [0, 7, 3]),
    cluster=GPU,
    preemption="queue:2>1",
    backfill="none",
    expected={"restarts": [0, 1, 0]},
)
# at 2 s job 3 cancels jobs 1 and 2 of users 1 and 2. So at 3 s users 1 and 3 submit again, and
# user 2 does not, for whom job 4 has waited outside of queue 1
GONE = few_jobs(
    *(4, [0, 0, 1, 2, 2, 2], [10, 10, 10, 5, 5, 5], [1, 2, 1, 3, 1, 1]),
    **{"queue": [1, 1, 1, 2, 3, 1], "user_id": [1, 1, 2, 3, 1, 4]},
    job_number=[1, 2, 3, 4, 5, 6],
)
for passes in ("per-event", "per-timestamp"):
    add(
        f"who is cancelled makes room a second later, {passes}",
        GONE,
        preemption="queue:2>1,cancel",
        quota="user:submitted=2; queue=1:submitted=3",
        passes=passes,
        expected={"number": [1, 2, 3, 4, 5, 6], "submit": [0, 0, 1, 2, 3, 3]}
        | {"start": [0, 0, 1, 2, 7, 7], "end": [10, 2, 2, 7, 12, 12]},
    )
# its nodes are many times more than there are jobs
for mode, ends in (("requeue", [17, 7]), ("suspend", [14, 7]), ("cancel", [3, 7])):
    many = few_jobs(500, [0, 3], [10, 4], [500, 500], queue=[1, 2])
    stops = {"preemption": f"queue:2>1,{mode}", "expected": {"end": ends}}
    add(f"very many nodes, {mode}", many, cluster="500x1x1", **stops)
# at 8 s the last job stops the second for one processor, after the first was tried in vain
FREES = few_jobs(8, [0, 0, 4, 8], [6, 12, 10, 15], [1, 4, 4, 1], queue=[2, 3, 1, 2])
ends = {"end": [16, 18, 14, 23]}
frees = {"preemption": "queue:1>2;2>3,suspend", "expected": ends}
add("who stops others may free more", FREES, [0, 0, 4, 8], **frees)
# job 1 of its user has ended by the time at which job 2 stops job 0, which is predicted to run for
# 5 s, like job 3. At 4 s there is no pass, though job 2 should have ended. The pass at 7 s looks at
# job 0 anew: it is 6 s since job 1 ended
AGAIN = few_jobs(
    *(4, [0, 0, 2, 7], [10, 1, 10, 5], [2, 1, 3, 1]), queue=[1, 1, 2, 1], user_id=[1, 1, 2, 3]
)
for passes in ("per-event", "per-timestamp"):
    add(
        f"who is stopped is predicted anew before the next pass, {passes}",
        *(AGAIN, [12, 0, 2, 7]),
        preemption="queue:2>1",
        policy="spf",
        policy_estimate=Told(lambda x: x["break_time"] or 5),
        estimate=[10, 1, 2, 5],
        passes=passes,
        backfill="none",
        expected={"restarts": [1, 0, 0, 0], "policy_run_time": [6, 1, 5, 5]},
    )


@pytest.mark.parametrize(("name", "backfill"), each_way(CASES))
def test_by_hand(name: str, backfill: str) -> None:
    check(CASES[name], backfill)


def test_who_stops_others_may_start_in_the_same_second() -> None:
    """At 1 s job 2 makes job 1 leave, and starts as job 0 ends: the proof knows that it waited."""
    jobs = urgent(
        submit_time=[0, 0, 1],
        run_time=[1, 12, 1],
        requested_time=[3, 12, 1],
        requested_processors=[1, 2, 2],
        queue=[4, 2, 3],
    )
    result = simulate(jobs, "easy", preemption="queue:3>2,grace=7", passes="per-event")
    assert result.start.tolist() == [0, 8, 1]
    validate_schedule(result)
