"""Schedules worked out by hand: the engine and the reference make them, and all is proved.

Each case is a few jobs, rules, and what becomes of the jobs. What is drawn is in
``test_rules_in_places.py``; crowds are in ``test_crowds.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from few_jobs import chain, few_jobs, five, four, three
from preemption_strategies import urgent
from same_results import agreed

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.explanation import waits
from hpcgym.explore.live import Session
from hpcgym.machine import Cluster, Failures, NodeGroup
from hpcgym.schedule.provenance import provenance_of
from hpcgym.schedule.result import Result
from hpcgym.scheduler.policies import FairShare
from hpcgym.workload.fingerprint import given_digest, workload_digest
from hpcgym.workload.model import Workload, pairs_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*EASY's reservation is of named nodes"),
    pytest.mark.filterwarnings("ignore:.*follow only missing jobs"),
]


class Case(NamedTuple):
    """Jobs, rules, and what becomes of the jobs, by the words of :func:`told`.

    ``backfills``: under each of them it is the same; ``slow``: whether the reference has it.
    """

    jobs: Workload
    rules: dict[str, Any]
    expected: dict[str, list[Any]]
    backfills: tuple[str, ...] = ("easy",)
    slow: bool = True


def told(result: Result, what: str) -> list[Any]:
    """Return an attribute of all jobs; ``nodes``: the first of each; ``of job``: by number."""
    if what == "submit":
        return result.workload.submit_time.tolist()
    if what == "number":
        return result.workload.job_number.tolist()
    if what == "start of job":
        return result.start[np.argsort(result.workload.job_number)].tolist()
    if what == "nodes":
        assert result.allocation is not None
        return result.allocation.node[result.allocation.first[:-1]].tolist()
    values: list[Any] = getattr(result, what).tolist()
    return values


NO_PLAN, ANY = ("none", "easy", "depth:2"), ("none", "easy", "depth:2", "slurm")
FIVE_WAYS = ("none", "easy", "depth:2", "depth:3", "conservative")
CASES: dict[str, Case] = {}


def add(name: str, jobs: Workload, start: list[int] | None = None, /, **rules: Any) -> None:
    """Add a case that may say when jobs start; see :class:`Case` for ``backfills`` and ``slow``."""
    more = {key: rules.pop(key) for key in ("backfills", "slow") if key in rules}
    expected = ({} if start is None else {"start": start}) | rules.pop("expected", {})
    if "backfill" in rules:
        more["backfills"] = (rules.pop("backfill"),)
    assert name not in CASES
    CASES[name] = Case(jobs, rules, expected, **more)


def jobs_on(processors: int, *rows: tuple[int, int, int]) -> Workload:
    """Return jobs by submission, processors and run time, which they request."""
    submit, wide, run = zip(*rows, strict=True)
    return few_jobs(processors, submit, run, wide)


# --- Back-filling ---------------------------------------------------------------------------------


# three in a row on three of the processors, one that wants all at 30 s, one for 40 s on one; beside
# two that have reservations one processor is left
FIVE = jobs_on(4, (0, 3, 10), (1, 3, 10), (2, 3, 10), (3, 4, 5), (4, 1, 40))
for way, begun in zip(FIVE_WAYS, ([30, 35], [44, 4], [44, 4], [30, 35], [30, 35]), strict=True):
    add(f"five {way}", FIVE, [0, 10, 20, *begun], backfill=way)
# what could start beside the first at 40 s does so at the next multiple of 30 s, or never: the
# fourth would end at 330 s and delay the second; the fifth comes in time for the pass at 120 s
SLURM = jobs_on(4, (0, 2, 300), (10, 4, 100), (40, 1, 50), (70, 1, 240), (95, 1, 10))
for settings, begun in (
    ("slurm", [300, 60, 400, 120]),
    ("slurm:bf_interval=600", [300, 400, 400, 400]),
    ("slurm:bf_max_job_test=1", [300, 400, 400, 400]),
    ("slurm:bf_window=1", [330, 60, 90, 120]),  # the second has no reservation
):
    add(settings, SLURM, [0, *begun], backfill=settings)
# at an event all start that are first and fit, also where a pass that back-fills falls on the same
# second, and looks at one job alone
ONE_LOOK = jobs_on(4, (0, 4, 30), (1, 1, 100), (2, 1, 100), (3, 1, 100))
add("slurm at an event", ONE_LOOK, [0, 30, 30, 30], backfill="slurm:bf_max_job_test=1")
# job 0 comes with the pass at 0 s. So there is one at 30 s, and the next one at 60 s
LATE = jobs_on(4, (0, 2, 1000), (31, 3, 1000), (31, 1, 10))
add("the second of a pass counts as after it", LATE, [0, 1000, 60], backfill="slurm")
# nothing happened at 30 s, so that none comes at 60 s
LATER = jobs_on(4, (0, 2, 1000), (65, 3, 1000), (65, 1, 10))
add("nothing happened since the last pass", LATER, [0, 1000, 65], backfill="slurm")
# jobs 1 and 2 exceed the quota: after 30 s Slurm looks no more until job 3 comes, and job 4 starts
# behind it at once, not at 90 s
BARRED = few_jobs(
    8, [0, 0, 0, 65, 65], [1000, 5, 5, 1000, 10], [1, 1, 1, 8, 1], user_id=[1, 1, 1, 2, 3]
)
add(
    "who exceeds a quota does not make slurm look",
    *(BARRED, [0, 1000, 1005, 1010, 65]),
    cluster=Cluster(groups=(NodeGroup("n", 8, {"core": 1}),)),
    backfill="slurm",
    quota="user:jobs=1",
)

# a pass at an event looks at two jobs. The passes at 60 s, with no event, start all that wait; of
# four jobs none is left for the backfill pass then, of five one is. All the same one comes at 90 s,
# and then at 120 s
FEW = "slurm:default_queue_depth=1+sched_interval=3600"
ONES = [(0, 1, 1000), *[(31, 1, 1000)] * 5]
for count in (3, 4, 5):
    jobs = jobs_on(8, *ONES[: 1 + count], (91, 8, 1000), (91, 1, 10))
    starts = [0, 31, 31, 60, 60, 60][: 1 + count]
    if count > 3:
        add(f"{count} waited before the pass", jobs, [*starts, 1060, 120], backfill=FEW)
    nodes = Cluster(groups=(NodeGroup("n", 8, {"core": 1}),))
    add(f"{count} waited on nodes", jobs, cluster=nodes, backfill=FEW)
SIX = jobs_on(8, *ONES)
# at 60 s the pass in order starts two jobs, and the backfill pass, which comes behind, looks at one
add("a pass in order before it", SIX, [0, 31, 31, 60, 60, 60], backfill=f"{FEW}+bf_max_job_test=1")
# at 5 s job 2 is first of its queue, and no room can be made for it, as job 1 cannot be stopped; at
# 30 s job 3 is, which stops job 0
add(
    "a pass without an event begins with preemption",
    few_jobs(4, [0, 0, 5, 5], [1000, 1000, 100, 100], [2, 2, 4, 2], queue=[1, 3, 2, 2]),
    [1100, 0, 1000, 30],
    policy="processors if wait < 20 else -processors",
    preemption="queue:2>1",
    backfill="slurm",
)
# job 1 exceeds the quota, job 2 does not fit, and job 3 could start behind it
QUOTA = few_jobs(
    4, [0] * 4, [100, 10, 100, 10], [2, 1, 3, 1], user_id=[1, 1, 2, 1], queue=[1, 1, 2, 2]
)
for setting, begun in (
    ("bf_max_job_test=2", 110),
    ("bf_max_job_test=3", 0),
    ("bf_max_job_user=1", 0),
):
    rules = {"quota": "queue=1:jobs=1", "expected": {"last start": [begun]}}
    add(f"who exceeds a quota under {setting}", QUOTA, backfill=f"slurm:{setting}", **rules)

# --- Jobs that are held back ----------------------------------------------------------------------

TENTH = {"share": 0.5, "from_s": 10, "factor": 100, "erode_s": 100}
# z = ln(100 / 10) / ln(100) = 1/2: it holds back 0.5 x 10 / 2 = 2.5, rounded 2, beside its 4. At
# 0 s 5 processors are free, not 6; at 20 s all are
LONG = jobs_on(10, (0, 5, 20), (0, 4, 100))
add("a long job", LONG, [0, 0], backfill="none", policy="spf")
add("a long job waits", LONG, [0, 20], backfill="none", policy="spf", hold=TENTH)
# at most 5 processors, after 100 s 2.5: 2. The pass of the submission at 100 s finds 6 free
ERODES = jobs_on(10, (0, 4, 500), (0, 4, 1000), (100, 1, 5))
add("waiting lets less be held back", ERODES, [0, 100, 100], backfill="none", hold=TENTH)
FOR_EVER = {**TENTH, "erode_s": math.inf}
add("waiting changes nothing", ERODES, [0, 500, 500], backfill="none", hold=FOR_EVER)
WIDE = jobs_on(10, (0, 9, 1000), (0, 10, 1000))
add("no job needs more than the machine", WIDE, [0, 1000], hold={**TENTH, "share": 1})
# the third needs 2 + 5 of 10, and 4 are free; at 30 s 7, and none is extra then: a job of 1 that
# ends later waits, one that ends then starts
HEAD = jobs_on(10, (0, 3, 30), (0, 3, 40), (0, 2, 1000), (0, 1, 31), (0, 1, 9))
add(
    "the head is promised what it needs",
    *(HEAD, [0, 0, 30, 30, 0]),
    hold={**FOR_EVER, "from_s": 50, "factor": 20},
    expected={"reserved_start": [-1, -1, 30, -1, -1]},
)
# the third needs 2 + 5 from 30 s on, the fourth would have 4 of 10 beyond that, and so has a place
# at 1030 s; the fifth needs 3 + 4. The sixth ends too late, the seventh in time. At 30 s the third
# has 2 alone, so that the fourth and sixth start, and the fifth is the head until 61 s
ROWS = ((0, 3, 30), (0, 3, 40), (0, 2, 1000), (0, 4, 31), (0, 3, 500), (0, 1, 31), (0, 1, 30))
add(
    "a reservation takes what its job needs, a start its own processors",
    *(jobs_on(10, *ROWS), [0, 0, 30, 30, 61, 30, 0]),
    backfill="depth:2",
    hold={**FOR_EVER, "from_s": 50, "factor": 20},
    expected={"reserved_start": [-1, -1, 30, -1, 61, -1, -1]},
)
# the last needs 3, which are free at 40 s, when the fourth has the whole machine from 680 s on:
# under EASY, which reserves for the third alone, it starts then
SECOND = jobs_on(10, (0, 2, 40), (0, 6, 600), (0, 6, 80), (0, 10, 140), (0, 2, 1000))
LAST = {**FOR_EVER, "share": 0.1, "from_s": 700, "factor": 1.2}
add("a job is held back beside one reservation", SECOND, [0, 0, 600, 1040, 40], hold=LAST)
add(
    "a job is held back beside two reservations",
    *(SECOND, [0, 0, 600, 680, 820]),
    backfill="depth:2",
    hold=LAST,
    expected={"reserved_start": [-1, -1, 600, 680, 820]},
)
# the head of 8 waits for 20 s; 2 are extra, which EASY gives to a long job
SPARE = jobs_on(10, (0, 6, 20), (0, 8, 10), (0, 2, 100), (0, 2, 19))
add("easy spares what is extra", SPARE, [0, 20, 0, 0])
add("until-shadow spares nothing", SPARE, [0, 20, 20, 0], backfill="until-shadow")
# as in Slurm, which looks at what is free in the second in which a job would end, too
JUST = jobs_on(10, (0, 6, 20), (0, 8, 10), (0, 2, 20))
add("easy ends as the head starts", JUST, [0, 20, 0])
add("until-shadow ends before it starts", JUST, [0, 20, 20], backfill="until-shadow")
# two nodes of 5 cores: by nodes the second job fits, but 4 + 2 of 5 free cores do not
FIVES = Cluster(groups=(NodeGroup("all", 2, {"core": 5, "mem": 5}),))
CORES = few_jobs(
    *(10, [0, 0], [20, 100], [5, 4]), units=[1, 1], per_unit={"core": [5, 4], "mem": [1, 1]}
)
for way in ("first-fit", "worst-fit"):
    rules = {"cluster": FIVES, "allocation": way, "policy": "spf", "hold": TENTH}
    add(f"on nodes cores are held back, {way}", CORES, [0, 20], **rules)
# the second needs 4 + 2 cores from 20 s on: the third would leave 5, though each has a node
BESIDE = few_jobs(
    *(10, [0] * 3, [20, 1000, 30], [5, 4, 5]),
    units=[1] * 3,
    per_unit={"core": [5, 4, 5], "mem": [1] * 3},
)
TWO_CORES = {**FOR_EVER, "share": 0.2, "from_s": 100, "factor": 2}
add(
    "on nodes a job leaves a reservation what it needs",
    *(BESIDE, [0, 20, 20]),
    cluster=FIVES,
    backfill="depth:2",
    hold=TWO_CORES,
)

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

# --- Preemption -----------------------------------------------------------------------------------

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
# job 0 goes on, though job 2 waits. Where it is queued again job 3 is back-filled before 13 s
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

# --- A pass after each event ----------------------------------------------------------------------

COMES = [0, 0, 1, 2], [10, 10, 5, 3], [1, 1, 2, 2]
for name, jobs, rules, together, apart in (
    (  # at 10 s job 0 counts until its end is handled, though its processor counts as free
        *("quota", few_jobs(1, [0, 10, 10], [10, 5, 5], [1] * 3, user_id=[1, 1, 2])),
        *({"quota": "user:jobs=1", "backfill": "none"}, [0, 10, 15], [0, 15, 10]),
    ),
    (  # at 10 s job 2 comes as soon as job 0 has ended, and starts before job 1 ends
        *("submitted", few_jobs(2, *COMES, user_id=[1, 2, 1, 2], job_number=[1, 2, 3, 4])),
        *({"quota": "user:submitted=1", "policy": "spf"}, [0, 0, 13, 10], [0, 0, 10, 15]),
    ),
    (
        *(
            "dependencies",
            few_jobs(2, *COMES, preceding_job=[-1, -1, 1, 2], job_number=[1, 2, 3, 4]),
        ),
        *({"dependencies": "after", "policy": "spf"}, [0, 0, 13, 10], [0, 0, 10, 15]),
    ),
    (  # when the window ends at 10 s, job 1 comes and starts before job 2 comes
        *("maintenance", few_jobs(1, [3, 10, 10], [5, 3, 1], [1] * 3, job_number=[1, 2, 3])),
        *({"maintenance": "5/10", "policy": "spf"}, [14, 11, 10], [14, 10, 13]),
    ),
    (  # no job is stopped in the second of its start, as job 0, or of its end, as job 1
        *("preemption", few_jobs(1, [0, 0, 6], [10, 5, 2], [1] * 3, [10, 9, 2], queue=[1, 2, 3])),
        *({"preemption": "queue:3>2>1", "backfill": "none"}, [8, 0, 6], [8, 1, 6]),
    ),
):
    for passes, starts in (("per-timestamp", together), ("per-event", apart)):
        numbered = jobs.with_columns(job_number=list(range(1, len(jobs) + 1)))
        expected = {"start of job": starts}
        add(f"{name} {passes}", numbered, **rules, passes=passes, expected=expected)

# at 10 s the last job comes first, and does not fit; the third comes by the end of the first
STANDS = few_jobs(
    *(2, [0, 0, 1, 10], [10, 100, 5, 5], [1, 1, 1, 2]),
    **{"job_number": [1, 2, 3, 4], "preceding_job": [-1, -1, 1, -1]},
    think_time=[-1, -1, 0, -1],
)
each = {"backfill": "none", "passes": "per-event", "dependencies": "after"}
add("who comes by an end stands behind who is submitted then", STANDS, [0, 0, 105, 100], **each)
# the first job's prediction expires: all reservations are made anew as the next job comes. A pass
# comes at the next end alone, at 85 s. The reservation of then, which has passed, still stands in
# the way of all others: nobody starts until the next job comes, at 110 s
EXPIRES = few_jobs(
    *(5, [35, 47, 54, 65, 78, 110], [50, 6, 8, 13, 24, 42], [3, 2, 5, 2, 3, 2], [100] * 6)
)
add(
    "the time of a kept reservation passes before the next pass",
    *(EXPIRES, [35, 47, 152, 160, 160, 110]),
    **{"policy": "lqf", "backfill": "conservative", "passes": "per-event"},
    estimate=[18, 7, 10, 10, 18, 9],
    correction="recursive-doubling",
)

# --- The tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "backfill"), [(name, way) for name, case in CASES.items() for way in case.backfills]
)
def test_by_hand(name: str, backfill: str) -> None:
    case = CASES[name]
    result = agreed(case.jobs, case.slow, backfill=backfill, **case.rules)
    for what, expected in case.expected.items():
        found = told(result, "start")[-1:] if what == "last start" else told(result, what)
        assert found == expected, what


def test_tables_and_metrics_of_stopped_jobs() -> None:
    """Those of the cases above in which job 3 stops jobs 1 and 2."""
    again, cancelled, paused = (
        hpcgym.simulate(urgent(job_number=[1, 2, 3, 4]), preemption=f"queue:2>1,{mode}")
        for mode in ("requeue", "cancel", "suspend")
    )
    assert again.jobs["restarts"].tolist() == [0, 1, 1, 0]
    assert "cancelled" not in again.jobs
    assert (again.metrics["lost_runs"], again.metrics["lost_core_seconds"]) == (2, 5)
    used = (10 + 4 + 1 + 15 + 20 + 10) / (4 * 17)
    assert again.metrics["utilization"] == pytest.approx(used)
    assert "cancelled_jobs" not in again.metrics
    assert cancelled.jobs["cancelled"].tolist() == [False, True, True, False]
    names = ("cancelled_jobs", "lost_runs", "lost_core_seconds")
    assert [cancelled.metrics[name] for name in names] == [2, 0, 5]
    assert paused.jobs["suspended"].tolist() == [0, 5, 5, 0]
    assert "restarts" not in paused.jobs
    assert "lost_runs" not in paused.metrics
    assert (paused.metrics["suspensions"], paused.metrics["mean_suspended_s"]) == (2, 2.5)
    assert paused.metrics["utilization"] == pytest.approx((10 + 20 + 10 + 15) / (4 * 16))
    assert paused.metrics["mean_queue_length"] == pytest.approx(10 / 16)
    told_of_it = hpcgym.explain(paused, 2)
    assert "Of that it was suspended for 5 s, after its first start." in told_of_it.sentences
    assert [one["jobs"] for one in told_of_it.to_dict()["stops"]] == [[4]]


def test_a_schedule_with_suspended_jobs_as_a_log(tmp_path: Path) -> None:
    """Its waits have the time in it, so that jobs end when they did, and the header says so."""
    result = hpcgym.simulate(urgent(), preemption="queue:2>1,suspend")
    result.to_swf(tmp_path / "log.swf")
    text = (tmp_path / "log.swf").read_text()
    assert "jobs were suspended 2 times, which is told as a part of their waiting times" in text
    again = hpcgym.load_workload(tmp_path / "log.swf")
    ends = again.submit_time + again.wait_time + again.run_time
    assert ends.tolist() == result.end.tolist()


@pytest.mark.filterwarnings("ignore:.*no job f")
@pytest.mark.parametrize(
    ("rules", "kept", "late"),
    [
        ({"dependencies": "closed-loop"}, "jobs that follow others", 9),
        ({"quota": "all:submitted=1"}, "quotas of submitted jobs", 7),
    ],
)
def test_of_moved_submissions_less_is_told(rules: dict[str, Any], kept: str, late: int) -> None:
    """Passes are not made again; but the schedule is a log of its own."""
    jobs = chain(submit=[0, 1, 2])
    result = hpcgym.simulate(jobs, **rules)
    again = hpcgym.simulate(result.as_workload(), "easy")
    assert again.start.tolist() == result.start.tolist()
    with pytest.raises(HpcgymError, match=f"a simulation with {kept} cannot be"):
        hpcgym.continued(result, 5)
    with pytest.raises(
        HpcgymError, match=r"cannot be explored live, since (jobs follow|quotas say)"
    ):
        Session({"one": result}, [])
    told_of_it = hpcgym.explain(result, late)
    assert "later than in the log" in told_of_it.sentences[1]
    assert "submitted" not in str(hpcgym.explain(result, 5))
    if "quota" in rules:
        assert waits(result).sum(axis="columns").tolist() == result.wait.tolist()
    else:
        assert told_of_it.passes.empty
        with pytest.raises(HpcgymError, match="why all jobs waited cannot be worked out "):
            waits(result)


@pytest.mark.parametrize(
    ("jobs", "rules"),
    [
        *((chain(job_number=[5, 5, 9], preceding_job=[-1, -1, 5]), rules)
          for rules in ({"dependencies": "after"}, {"dependencies": "closed-loop"})),
        (five(job_number=[1, 1, 3, 4, 4]), {"quota": "user:submitted=1"}),
    ],
)  # fmt: skip
def test_a_number_that_stands_twice_proves_less(jobs: Workload, rules: dict[str, Any]) -> None:
    """A requeued job has a row for each run; the engine follows the last, a result does not say."""
    hpcgym.validate_schedule(hpcgym.simulate(jobs, **rules))


def test_where_a_schedule_is_from_tells_whom_jobs_follow() -> None:
    """The two schedules are the same, as job 9 comes when the log says; the given jobs are not."""
    digests = []
    for preceding in ([-1, 5, 7], [-1, 5, 5]):
        jobs = chain(preceding_job=preceding)
        result = hpcgym.simulate(jobs, dependencies="after")
        assert result.given is jobs
        (schedule,) = provenance_of({"one": result})["schedules"]
        assert schedule["workload"] == workload_digest(result.workload)
        assert schedule["given"] == given_digest(jobs)
        digests.append((schedule["sha256"], schedule["workload"], schedule["given"]))
    assert digests[0][:2] == digests[1][:2]
    assert digests[0][2] != digests[1][2]
    more = replace(jobs, more_preceding=pairs_of([[9, 7]], ""))
    given = {given_digest(one) for one in (jobs, more, more.with_columns(wait_time=[1, 2, 3]))}
    assert len(given) == 3
    plain = hpcgym.simulate(jobs)
    assert plain.given is None
    assert "given" not in provenance_of({"one": plain})["schedules"][0]
