"""Schedules under quotas, in windows, and of jobs that follow others, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from by_hand import Cases, check, each_way
from by_hand import add as add_case
from few_jobs import chain, few_jobs, five, four, three

from hpcgym.machine import Cluster, Failures, NodeGroup
from hpcgym.workload.model import pairs_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*EASY's reservation is of named nodes"),
    pytest.mark.filterwarnings("ignore:.*follow only missing jobs"),
]


NO_PLAN, ANY = ("none", "easy", "depth:2"), ("none", "easy", "depth:2", "slurm")
CASES: Cases = {}
add = partial(add_case, CASES)

# --- Quotas ---------------------------------------------------------------------------------------

QUEUES = four(queue=[1, 2, 2, 1], array=[-1, 7, -1, 7])
for quota, starts in (
    ("user:jobs=2", [0, 0, 10, 10]),
    ("user:processors=6", [0, 0, 0, 10]),
    ("all:jobs=1", [0, 10, 20, 30]),
    ("queue=2:jobs=1", [0, 0, 10, 0]),
    ("queue:jobs=1", [0, 0, 10, 10]),
    ("queue=2/user:jobs=1; all:processors=4", [0, 0, 10, 10]),
    ("array:jobs=1", [0, 0, 0, 10]),
    ("array=7:processors=2", [0, 0, 0, 10]),
    ("array/queue:jobs=1", [0, 0, 0, 0]),
):
    add(f"quota {quota}", QUEUES, starts, quota=quota)
CALLED = replace(QUEUES, header={"Queue": ["1 day", "2 night"]})
add("quota of a name", CALLED, [0, 0, 10, 0], quota="queue=night:jobs=1")
# job 2 starts before job 1 of its user, whose reservation then bars nobody
LOSES = few_jobs(9, [0, 0, 0, 1], [100, 100, 50, 200], [6, 9, 2, 1], user_id=[1, 2, 2, 3])
add(
    "a reservation is lost when another of the user starts",
    *(LOSES, [0, 201, 0, 1]),
    quota="user:jobs=1",
    backfills=("easy", "depth:2"),
)
# job 2, the head, is passed over once job 3 of its user runs; so job 4 is the head, to which a
# promise is made though nothing is free when it comes
add(
    "who is first of those that may start is promised its start",
    few_jobs(5, [0, 0, 1, 2, 3], [100, 50, 10, 20, 10], [2, 2, 5, 1, 3], user_id=[1, 2, 4, 4, 5]),
    [0, 0, 100, 2, 50],
    quota="user:jobs=1",
    expected={"reserved_start": [-1, -1, 100, -1, 50]},
)
# at 5 s two jobs of the user run, one too many, and who is too wide; others wait until they end
PAST: dict[str, Any] = {"submit": [0, 0, 6, 7], "wait_time": [0] * 4}
MANY = four(**PAST, run=[10, 20, 5, 5], requested=[10, 20, 5, 5]).extract(5)
add("a quota in an extract", MANY, [0, 0, 20, 25], quota="user:jobs=1", slow=False)
TOO_WIDE = four(**PAST, wide=[4, 2, 2, 2]).extract(5)
add("who runs is too wide", TOO_WIDE, [0, 0, 10, 20], quota="user:processors=3", slow=False)

# users 1 and 2 may have one job together, and user 3 as many as she likes
EITHER = few_jobs(4, [0] * 5, [10] * 5, [1] * 5, user_id=[1, 2, 3, 1, 3])
add("of one of several users", EITHER, [0, 10, 0, 20, 0], quota="user=1|2:jobs=1", backfills=ANY)
add("of each of several", EITHER, [0, 0, 0, 10, 0], quota="user=1|2/user:jobs=1", backfills=ANY)

# --- Quotas of submitted jobs ---------------------------------------------------------------------

for quota, starts in (  # who is submitted starts at once
    ("user:submitted=9", [0, 0, 1, 2, 3]),
    ("all:submitted=4", [0, 0, 1, 2, 7]),  # job 4 ends then
    ("user:submitted=1", [0, 0, 10, 20, 3]),  # jobs 1 and 3 to 4, one after the other
    ("queue=2:submitted=1", [0, 0, 20, 2, 30]),
    # at 10 s job 3 is kept out by queue 2, and job 4, which is due later, goes past it; at 20 s
    # both job 3 and job 5 would be the one of queue 2
    ("user:submitted=1; queue:submitted=1", [0, 0, 20, 10, 30]),
):
    expected = {"start of job": starts, "wait": [0] * 5}
    add(f"submitted {quota}", five(), quota=quota, expected=expected, backfills=ANY)
# one processor, and two of its user's jobs run or wait at any time
ALIKE = five(user_id=[1] * 5, run=[10] * 5)
comes = {"submit": [0, 0, 10, 20, 30], "start": [0, 10, 20, 30, 40], "wait": [0, 10, 10, 10, 10]}
add("who waits counts", ALIKE, quota="user:submitted=2", expected=comes, processors=1)
comes = {"submit": [0, 0, 1, 10, 20], "start": [0, 10, 20, 30, 40]}
add("three, and one that runs", ALIKE, quota="user:submitted=3+jobs=1", expected=comes)
# job 2 is due first, and comes when job 1 ends; job 5 came at 3 s
comes = {"number": [1, 3, 4, 5, 2], "submit": [0, 1, 2, 3, 10], "start": [0, 10, 20, 25, 30]}
OUTSIDE = five(user_id=[1, 1, 2, 3, 4])
add(
    "who was outside stands behind", OUTSIDE, quota="user:submitted=1", expected=comes, processors=1
)
# job 2 follows job 1, and is due as that ends; job 3 has waited outside since 5 s
DUE = few_jobs(
    *(1, [0, 0, 5], [10] * 3, [1] * 3),
    **{"job_number": [1, 2, 3], "user_id": [1, 2, 1], "preceding_job": [-1, 1, -1]},
)
comes = {"number": [1, 2, 3], "submit": [0, 10, 10], "start": [0, 20, 10]}
add("outside before due", DUE, quota="user:submitted=1", expected=comes, dependencies="after")
# at 5 s jobs 1 and 2 run and job 3 waits; so jobs 4 and 5 come when these have ended
PART = five(submit=[0, 0, 1, 6, 7], wait_time=[0, 0, 9, 0, 0], user_id=[1] * 5).extract(5)
comes = {"submit": [0, 0, 1, 20, 20], "start": [0, 0, 10, 20, 20]}
add(
    "submitted in an extract",
    PART,
    quota="user:submitted=2",
    expected=comes,
    processors=2,
    slow=False,
)
# jobs of one user come one after the other, whatever the machine
CROWD = few_jobs(64, [0] * 100, [7] * 100, [1 + k % 9 for k in range(100)], user_id=[1] * 100)
comes = {"start": [7 * k for k in range(100)]}
add("most of a log waits outside", CROWD, quota="user:submitted=1", expected=comes)

# --- Windows --------------------------------------------------------------------------------------

for window, starts in (
    ("12/20", [0, 1, 20]),  # the third would run until 20 s, and two run until 10 s and 11 s
    ("10/11", [0, 11, 11]),  # a job may end as the window begins, and start as it ends
    ("9/11", [11, 11, 21]),
    ("0/5:processors=2", [0, 5, 10]),
    ("3/5:processors=2", [0, 5, 10]),
    ("5/5000000:processors=1; 40/50:processors=3", [0, 10, 20]),
    # 9:00 in Berlin is the log's beginning
    ("2026-03-01T09:00:10/2026-03-01T08:00:11+00:00", [0, 11, 11]),
    ("2020-01-01/2026-03-01T09:00:05", [5, 5, 15]),  # it began before the log
):
    add(f"window {window}", three(), starts, maintenance=window, backfills=NO_PLAN)
NODES = Cluster(
    groups=(NodeGroup("thin", 2, {"core": 2}), NodeGroup("gpu", 1, {"core": 2, "gpu": 1}))
)
for window, on, starts in (
    ("5/15:nodes=gpu", [0, 1, 0], [0, 1, 10]),
    ("5/15:nodes=thin", [2, 2, 0], [0, 10, 15]),
    ("5/15:nodes=1-2", [0, 0, 1], [0, 10, 15]),
    ("5/15", [0, 1, 2], [15, 15, 15]),
):
    on_nodes = {"cluster": NODES, "expected": {"nodes": on}}
    add(f"window {window} on nodes", three(), starts, maintenance=window, **on_nodes)
SHORT = three(run=[10, 50, 5], wide=[4] * 3)
add("short jobs start before a window", SHORT, [0, 30, 10], maintenance="20/30")
add("none starts before another", SHORT, [0, 30, 80], maintenance="20/30", backfill="none")
# at 5 s a job runs that ends at 20 s
RUNS = few_jobs(4, [0, 6, 7], [20, 5, 4], [2, 1, 1], wait_time=[0] * 3).extract(5)
for window, starts in (
    ("10/30", [0, 30, 30]),
    ("10/30:processors=2", [0, 20, 20]),
    ("10/30:processors=1", [0, 6, 11]),
    ("12/30", [0, 6, 7]),
):
    add(f"window {window} in an extract", RUNS, starts, maintenance=window, slow=False)
# Slurm looks at 0, 30, 70 and 100 s: nothing happens from 30 s to 70 s
NOBODY = few_jobs(2, [0, 70, 70, 80], [10, 1000, 5, 20], [1, 1, 2, 1])
looks = {"backfill": "slurm:bf_interval=30+bf_resolution=1", "maintenance": "35/36"}
add("a window ends where nobody waits", NOBODY, [0, 70, 1070, 100], **looks)
# by 1000 s what user 1 has used is forgotten, and job 1 has waited for longer
FORGETS = few_jobs(1, [0, 5, 9], [10, 100, 100], [1, 1, 1], user_id=[1, 1, 2])
USAGE = {"policy": {"fairshare": 1, "wait": 0.01}, "fair_share": {"half_life_s": 20}, "slow": False}
add("priorities by usage", FORGETS, [0, 110, 10], **USAGE)
add("those at the end of a window", FORGETS, [0, 1000, 1100], maintenance="10/1000", **USAGE)
DOWN = {
    "cluster": Cluster(groups=(NodeGroup("a", 1, {"core": 1}),)),
    "failures": Failures([0], [10], [1000]),
}
add("those at a repair", FORGETS, [0, 1000, 1100], **DOWN, **USAGE)

# --- Jobs that follow others ----------------------------------------------------------------------

WAITED = {"wait_time": [0, 15, 0]}
for dependencies, starts, columns in (
    ("none", [0, 1, 40], {}),
    ("after", [0, 13, 40], {}),
    ("closed-loop", [0, 13, 23], {}),
    # in the log job 7 ended at 1 s + 15 s + 10 s, 14 s before job 9 was submitted
    ("closed-loop", [0, 13, 37], WAITED),
    ("after", [0, 13, 40], WAITED),
    ("after", [0, 13, 90], {"think_time": [-1, 3, 67]}),
):
    expected = {"submit": starts, "wait": [0] * 3}  # there is always room
    add(
        f"{dependencies} {columns}",
        *(chain(**columns), starts),
        dependencies=dependencies,
        expected=expected,
        backfills=NO_PLAN,
    )
# job 9 follows 5 and 7, and 7 waits for the processors of 5 until 10 s; it ends last
for think, dependencies, last in (
    (-1, "after", 20),
    (4, "after", 24),
    (4, "closed-loop", 24),
    (-1, "closed-loop", 39),  # in the log job 7 ended at 21 s, 19 s before
    (30, "after", 50),
):
    jobs = chain(
        submit=[0, 1, 15 if dependencies == "after" else 40],
        wide=[4] * 3,
        wait_time=[0, 10, 0],
        preceding_job=[-1, -1, 5],
        think_time=[-1, -1, think],
    )
    jobs = replace(jobs, more_preceding=pairs_of([[9, 7], [9, 99], [8, 5]], ""))
    expected = {"submit": [0, 1, last]}
    several = {"dependencies": dependencies, "expected": expected}
    add(f"several others {dependencies} {think}", jobs, [0, 10, last], **several)
# job 7, first in the log of those that wait, comes third
BEHIND = chain(submit=[0, 1, 2], wide=[4] * 3, preceding_job=[-1, 5, -1])
expected = {"number": [5, 9, 7], "wait": [0, 8, 7]}
add("who comes late", BEHIND, [0, 10, 20], dependencies="after", expected=expected)
add(
    "who comes late waits from then on",
    *(BEHIND, [0, 10, 20]),
    dependencies="after",
    policy="20 * wait - requested",
)
# job 2 comes at 100 s, behind job 3, which is as wide and waits since 50 s
TIE = few_jobs(4, [0, 0, 1, 50], [100, 200, 10, 10], [1, 3, 4, 4], job_number=[1, 4, 2, 3])
TIE = TIE.with_columns(preceding_job=[-1, -1, 1, -1])
for order in ("sqf", "processors + 0 * queued", "processors + 0 * wait"):
    expected = {"number": [1, 4, 3, 2], "submit": [0, 0, 50, 100]}
    rules = {"policy": order, "dependencies": "after", "expected": expected}
    add(f"a tie by {order}", TIE, [0, 0, 200, 210], backfills=ANY, **rules)
# the same behind a job as wide as the machine
FILL = few_jobs(
    4, [0, 0, 1, 2, 50], [100, 200, 9, 10, 10], [1, 3, 4, 1, 1], job_number=[1, 4, 5, 2, 3]
).with_columns(preceding_job=[-1, -1, -1, 1, -1])
for order in ("spf", "requested + 0 * queued", "processors + 0 * queued"):
    expected = {"number": [1, 4, 5, 3, 2]}
    rules = {"backfill_order": order, "dependencies": "after", "expected": expected}
    add(f"a tie behind by {order}", FILL, [0, 0, 200, 100, 110], backfill="easy", **rules)


@pytest.mark.parametrize(("name", "backfill"), each_way(CASES))
def test_by_hand(name: str, backfill: str) -> None:
    check(CASES[name], backfill)
