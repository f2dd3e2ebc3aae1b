"""Random small workloads and schedulers that look for trouble: ties, bursts, wrong estimates."""

from __future__ import annotations

import math
import re
from typing import Any

from drawing import strategies as st

from hpcgym.machine import Cluster
from hpcgym.reference.orders import POLICIES
from hpcgym.workload.model import Workload

WEIGHTS = st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.0, 0.0, 0.1, 1 / 3, 0.5, 1.0, 20.0])
POLICY = st.one_of(st.sampled_from(sorted(POLICIES)), st.tuples(*[WEIGHTS] * 6).filter(any))

#: Seconds between submissions: all at once, ties and short steps, or idle gaps as well.
GAPS = (st.just(0), st.sampled_from([0, 0, 0, 1, 2, 3, 7]), st.sampled_from([0, 0, 1, 5, 50, 5000]))

#: What a run time becomes as requested time; a smaller request gets the job killed.
REQUESTS = st.one_of(
    st.just(lambda run: run),
    st.just(lambda run: max(run // 2, 1)),
    st.just(lambda run: 2 * run),
    st.just(lambda run: 10 * run),
    st.integers(-3, 30).map(lambda more: lambda run: max(run + more, 1)),
    st.sampled_from([10, 60, 3600, 40000]).map(lambda request: lambda run: request),
)


@st.composite
def workloads(
    draw: st.DrawFn, max_jobs: int = 40, max_processors: int = 16, brief: bool = False
) -> Workload:
    """A machine of 1 to 16 processors and 1 to 40 jobs in submission order.

    Times are multiples of one unit drawn for the workload, so that events coincide often and
    prediction corrections (60 s, 300 s, ...) come into play; of one second where it is ``brief``.
    """
    processors = draw(st.integers(1, max_processors))
    unit = 1 if brief else draw(st.sampled_from([1, 1, 20, 600]))
    gaps = draw(st.sampled_from(GAPS[:2] if brief else GAPS))
    sizes = st.one_of(
        st.integers(1, processors), st.just(processors), st.just(1), st.just((processors + 1) // 2)
    )
    lengths = st.one_of(st.integers(1, 12), st.sampled_from([1, 2, 4, 8, 30, 100]))
    job = st.tuples(gaps, sizes, lengths, REQUESTS, st.sampled_from([0, 0, 1, -1]))
    fewest = draw(st.sampled_from([1, 5, 15, 30]))  # lists alone would stay short
    jobs = draw(st.lists(job, min_size=min(fewest, max_jobs), max_size=max_jobs))
    submit = draw(st.sampled_from([0, 1, 1000]))
    columns: dict[str, list[int]] = {
        "submit_time": [],
        "requested_processors": [],
        "run_time": [],
        "requested_time": [],
        "user_id": [],
    }
    for gap, size, length, request, user in jobs:
        submit += gap * unit
        row = (submit, size, length * unit, request(length * unit), user)
        for values, value in zip(columns.values(), row, strict=True):
            values.append(value)
    return Workload.from_columns(columns, processors=processors, name="random")


@st.composite
def predictions(draw: st.DrawFn, workload: Workload) -> list[int]:
    """A given prediction for each job: too short, right, too long, or beyond the request."""
    factors = draw(
        st.lists(
            st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.0, 2.0, 7.0]),
            min_size=len(workload),
            max_size=len(workload),
        )
    )
    return [int(f * run) for f, run in zip(factors, workload.run_time.tolist(), strict=True)]


def holds() -> st.SearchStrategy[dict[str, Any] | None]:
    """How long jobs are held back, or that they are not."""
    rules = st.fixed_dictionaries(
        {
            "share": st.sampled_from([0.01, 0.1, 0.14, 0.3, 0.5, 1.0]),
            "from_s": st.sampled_from([1.0, 3.0, 20.0, 600.0, 3272.0]),
            "factor": st.sampled_from([1.01, 2.0, 4.0, 64.0]),
            "erode_s": st.sampled_from([1, 7, 600, 14400, math.inf]),
            "by": st.sampled_from(["requested", "policy_estimate", "both"]),
        }
    )
    return st.one_of(st.none(), rules)


def holds_back(backfill: str) -> bool:
    """Whether jobs may be held back under a way to backfill."""
    return backfill != "conservative" and not backfill.startswith("slurm")


DEPTHS = (
    "depth:2",
    "depth:3",
    "depth:20",
    "slurm",
    "slurm:bf_interval=200+bf_job_part_count_reserve=1",
    "slurm:bf_interval=700+bf_max_job_test=3+bf_window=1",
    "slurm:bf_interval=600+bf_job_part_count_reserve=2",
    "slurm:bf_interval=600+bf_resolution=1+bf_window_linear=1",
    "slurm:bf_interval=300+bf_resolution=300+bf_window_linear=70",
    "slurm:bf_interval=700+bf_resolution=7",
    "slurm:bf_interval=700+bf_max_job_user=1",
    "slurm:bf_interval=700+default_queue_depth=1+sched_interval=45",
    "slurm:bf_interval=-1",
    "slurm:bf_interval=-1+default_queue_depth=1+sched_interval=45",
)


def plans(*intervals: int) -> st.SearchStrategy[str]:
    """Settings of Slurm, with passes this often [s]."""
    return st.builds(
        "slurm:bf_interval={}+bf_resolution={}+bf_window_linear={}+{}{}".format,
        st.sampled_from(intervals),
        st.sampled_from([1, 7, 60, 300]),
        st.sampled_from([0, 0, 1, 45]),
        st.sampled_from(
            ["bf_max_job_test=500", "bf_job_part_count_reserve=2", "bf_max_job_test=3+bf_window=1"]
        ),
        st.sampled_from(
            ["", "", "+default_queue_depth=1", "+default_queue_depth=2+sched_interval=45"]
        ),
    )


PLANS = plans(30, 77, 600)
OF_USERS = st.builds(
    "slurm:bf_interval={}+bf_max_job_user={}+{}".format,
    st.sampled_from([77, 600, 3000]),
    st.sampled_from([1, 1, 2, 3]),
    st.sampled_from(
        ["bf_max_job_test=500", "bf_job_part_count_reserve=2", "bf_max_job_test=3", "bf_window=1"]
    ),
)
#: No passes that backfill.
AT_EVENTS = st.builds(
    "slurm:bf_interval=-1+default_queue_depth={}+sched_interval={}".format,
    st.sampled_from([1, 2, 100]),
    st.sampled_from([45, 60]),
)
SLURM = st.one_of(PLANS, PLANS, OF_USERS, AT_EVENTS)


def with_few_looks(backfill: str, workload: Workload) -> str:
    """Settings of Slurm with which it looks at the queue some hundred times at most.

    The reference takes some milliseconds for each look. Where jobs run for hours one every 30 s
    says no more than one every half an hour.
    """
    least = int(workload.run_time.sum()) // 200
    every = next((seconds for seconds in INTERVALS if seconds >= least), INTERVALS[-1])
    if backfill.startswith("slurm") and "bf_interval" not in backfill:
        backfill = f"slurm:bf_interval=30{backfill.removeprefix('slurm').replace(':', '+')}"
    return re.sub(
        r"(bf|sched)_interval=(\d+)",
        lambda found: f"{found[1]}_interval={max(int(found[2]), every)}",
        backfill,
    )


#: More than one reservation.
SEVERAL = ("conservative", *DEPTHS)
#: A multiple of each bf_interval and sched_interval of these, and some that divide it.
EVERY_INTERVAL = 12_600
INTERVALS = (1, 30, 60, 300, 700, 1400, 3150, 6300, EVERY_INTERVAL)
BACKFILL = ("none", "easy", "easy", "until-shadow", *DEPTHS, "conservative")


@st.composite
def schedulers(draw: st.DrawFn, workload: Workload) -> dict[str, Any]:
    """The words that describe a scheduler, as ``simulate_pool`` takes them."""
    named = st.sampled_from(["requested", "clairvoyant", "ave2"])
    backfill = with_few_looks(draw(st.sampled_from(BACKFILL)), workload)
    slurm = backfill.startswith("slurm")
    passes = ["per-timestamp"] if slurm else ["per-timestamp", "per-event"]
    return {
        "policy": draw(st.one_of(st.just("fcfs"), POLICY)),
        "backfill": backfill,
        "backfill_order": draw(st.one_of(st.sampled_from(["fcfs", "sjbf"]), POLICY)),
        "estimate": draw(st.one_of(named, predictions(workload))),
        "correction": draw(st.sampled_from(["requested", "incremental", "recursive-doubling"])),
        "threshold": draw(st.sampled_from([None, None, 0, 5, 100, 2000])),
        "passes": draw(st.sampled_from(passes)),
        "hold": draw(holds()) if holds_back(backfill) else None,
    }


@st.composite
def cases(draw: st.DrawFn, max_jobs: int = 40) -> tuple[Workload, dict[str, Any]]:
    """A workload and a scheduler for it."""
    workload = draw(workloads(max_jobs))
    return workload, draw(schedulers(workload))


SECONDS = st.sampled_from([0, 0, 1, 2, 3, 7, 20, 50, 600])
WATTS = st.sampled_from([0.0, 1.0, 14.0, 117.0, 358.0])


@st.composite
def clusters(draw: st.DrawFn, processors: int, slow: bool = True) -> Cluster:
    """A machine that switches processors off; in no time unless it is slow."""
    unit = draw(st.sampled_from([1, 1, 20, 600]))
    return Cluster(
        processors,
        idle_power_w=draw(WATTS),
        busy_power_w=draw(WATTS),
        shutdown_after_s=draw(SECONDS) * unit,
        off_power_w=draw(WATTS),
        shutdown_time_s=draw(SECONDS) * unit if slow else 0,
        boot_time_s=draw(SECONDS) * unit if slow else 0,
        shutdown_power_w=draw(st.one_of(st.none(), WATTS)),
        boot_power_w=draw(st.one_of(st.none(), WATTS)),
    )
