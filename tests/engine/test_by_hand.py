"""Schedules worked out by hand: the engine and the reference make them, and all is proved.

Backfilling, jobs that are held back, and passes after each event. What is drawn is in
``test_rules_in_places.py``; crowds are in ``test_crowds.py``.
"""

from __future__ import annotations

import math
from functools import partial

import pytest
from by_hand import Cases, check, each_way
from by_hand import add as add_case
from few_jobs import few_jobs

from hpcgym.machine import Cluster, NodeGroup
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.filterwarnings("ignore:.*EASY's reservation is of named nodes")


CASES: Cases = {}
add = partial(add_case, CASES)
FIVE_WAYS = ("none", "easy", "depth:2", "depth:3", "conservative")


def jobs_on(processors: int, *rows: tuple[int, int, int]) -> Workload:
    """Return jobs by submission, processors and run time, which they request."""
    submit, wide, run = zip(*rows, strict=True)
    return few_jobs(processors, submit, run, wide)


# --- Backfilling ----------------------------------------------------------------------------------

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
# at an event all start that are first and fit, also where a pass that backfills falls on the same
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


@pytest.mark.parametrize(("name", "backfill"), each_way(CASES))
def test_by_hand(name: str, backfill: str) -> None:
    check(CASES[name], backfill)
