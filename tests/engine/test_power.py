"""Processors that are switched off: against processors in a list, one by one, second by second."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from slow_power import STATES, integral_of_power, schedule_slowly, watts_of
from strategies import DEPTHS, clusters, workloads
from submission_strategies import chains

import hpcgym
from hpcgym.errors import WorkloadError
from hpcgym.machine import Cluster
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.validation.validate import ScheduleError, validate_schedule
from hpcgym.workload.model import Workload

# --- Random cases ------------------------------------------------------------------------------


def assert_accounts(result: hpcgym.Result) -> None:
    """Check what holds of the processor seconds and energies of every schedule."""
    seconds, metrics, cluster = dict(result.idle_seconds or {}), result.metrics, result.cluster
    assert set(seconds) == set(STATES)
    assert min(seconds.values()) >= 0
    busy = int((result.workload.requested_processors * result.run_time).sum())
    span = int(result.end.max() - result.workload.submit_time.min())
    assert busy + sum(seconds.values()) == cluster.processors * span
    assert metrics["makespan_s"] == span
    joules = {name: {**seconds, "busy": busy}[name] * watts_of(cluster)[name] for name in _NAMES}
    switching = joules["switching_off"] + joules["switching_on"]
    assert metrics["energy_busy_j"] == joules["busy"]
    assert metrics["energy_idle_j"] == joules["idle"]
    assert metrics["energy_off_j"] == joules["off"]
    assert metrics["energy_switching_j"] == pytest.approx(switching, rel=1e-15)
    parts = ("busy", "idle", "off", "switching")
    total = sum(metrics[f"energy_{part}_j"] for part in parts)
    assert metrics["energy_j"] == pytest.approx(total, rel=1e-15)


_NAMES = ("busy", *STATES)


@pytest.mark.parametrize("follow", [False, True])
@settings(max_examples=300)
@given(
    data=st.data(),
    workload=workloads(),
    backfill=st.sampled_from(["none", "easy", "depth:1", "depth:2", "depth:3", "depth:20"]),
)
@pytest.mark.filterwarnings("ignore::hpcgym.errors.RuleWarning")
def test_random_cases(follow: bool, data: st.DataObject, workload: Workload, backfill: str) -> None:
    """A depth of 1, which else is EASY, is so under a quota, which bounds nothing here.

    Processors are idle from the first submission on, which is of a job that follows none.
    """
    cluster, sjbf = data.draw(clusters(workload.processors)), data.draw(st.booleans())
    rules: dict[str, Any] = {"backfill": backfill, "backfill_order": "sjbf" if sjbf else "fcfs"}
    rules["quota"] = data.draw(st.sampled_from([None, "all:jobs=1000"]))
    given_jobs, more = workload, {}
    if follow:
        given_jobs, rules["dependencies"], more["follows"] = data.draw(chains(workload))
    result = hpcgym.simulate(given_jobs, cluster=cluster, **rules)
    slow = schedule_slowly(given_jobs, cluster, backfill, sjbf, **more)
    came = result.workload.job_number - 1 if follow else range(len(workload))
    assert result.start.tolist() == [slow.starts[job] for job in came]
    assert result.idle_seconds == slow.power.seconds()
    assert_accounts(result)
    if not follow:
        joules = integral_of_power(slow, cluster)
        assert result.metrics["energy_j"] == pytest.approx(joules, rel=1e-9)
    validate_schedule(result)


def test_processors_are_idle_from_the_first_submission_that_comes() -> None:
    """Job 1, first in the log, follows job 2, which comes at 10, finds both on, and ends at 14.

    One processor is off from 15 on; the other from 19 to 24, when job 1 comes, and on at 29.
    """
    columns = {name: [4, 4] for name in ("run_time", "requested_time")}
    workload = Workload.from_columns(
        {"submit_time": [0, 10], "preceding_job": [2, -1], "think_time": [10, -1], **columns}
        | {"job_number": [1, 2], "requested_processors": [1, 1]},
        processors=2,
    )
    cluster = Cluster(2, shutdown_after_s=3, shutdown_time_s=2, boot_time_s=5)
    result = hpcgym.simulate(workload, cluster=cluster, dependencies="after")
    assert result.workload.submit_time.tolist() == [10, 24]
    assert result.start.tolist() == [10, 29]
    seconds = {"idle": 6, "off": 23, "switching_off": 4, "switching_on": 5}
    assert result.idle_seconds == seconds
    validate_schedule(result)


@settings(max_examples=100)
@given(st.data(), workloads(), st.sampled_from(["none", "easy", "until-shadow", *DEPTHS]))
def test_switching_in_no_time_leaves_the_schedule(
    data: st.DataObject, workload: Workload, backfill: str
) -> None:
    cluster = data.draw(clusters(workload.processors, slow=False))
    rules = {"policy": data.draw(st.sampled_from(["fcfs", "saf", "lexp"])), "backfill": backfill}
    quota, quotas = None, []
    if data.draw(st.booleans()):
        quota, quotas = "user:jobs=2", [(workload.user_id.tolist(), 2, 10**9)]
    result = hpcgym.simulate(workload, cluster=cluster, quota=quota, **rules)
    expected = simulate_pool(jobs_of(workload), workload.processors, quotas=quotas, **rules)
    assert result.start.tolist() == [job.start for job in expected]
    assert result.reserved_start.tolist() == [job.reserved_start for job in expected]
    assert result.backfilled.tolist() == [job.backfilled for job in expected]
    assert result.idle_seconds is not None
    assert result.idle_seconds["switching_on"] == result.idle_seconds["switching_off"] == 0
    assert_accounts(result)
    assert {"events", "progress", "energy"} <= set(validate_schedule(result))


@settings(max_examples=100)
@given(st.data(), workloads(), st.sampled_from(["fcfs", "easy", "easy++", "wfp3"]))
def test_patience_beyond_the_makespan_changes_nothing(
    data: st.DataObject, workload: Workload, scheduler: str
) -> None:
    without = hpcgym.simulate(workload, scheduler)
    span = int(without.metrics["makespan_s"])
    more = data.draw(st.sampled_from([0, 1, 10**6]))  # 0: off_at itself is still idle
    cluster = Cluster(
        workload.processors, shutdown_after_s=span + more, boot_time_s=60, shutdown_time_s=30
    )
    result = hpcgym.simulate(workload, scheduler, cluster=cluster)
    assert result.start.tolist() == without.start.tolist()
    assert result.reserved_start.tolist() == without.reserved_start.tolist()
    assert result.metrics == without.metrics
    assert result.idle_seconds is not None
    assert sum(result.idle_seconds.values()) == result.idle_seconds["idle"]


@settings(max_examples=100)
@given(st.data(), workloads(), st.sampled_from(["fcfs", "easy", "easy++", "lexp", "saf"]))
def test_what_validation_says_of_delayed_jobs(
    data: st.DataObject, workload: Workload, scheduler: str
) -> None:
    """No false alarm, whatever the policy and the estimates; and the accounts are right."""
    cluster = data.draw(clusters(workload.processors))
    result = hpcgym.simulate(workload, scheduler, cluster=cluster)
    assert_accounts(result)
    proved = validate_schedule(result)
    assert {"capacity", "events", "energy", "progress"} <= set(proved)
    delays = cluster.boot_time_s + cluster.shutdown_time_s > 0
    assert not (delays and {"reservations", "order", "backfilled"} & set(proved))


# --- By hand -----------------------------------------------------------------------------------


def workload_of(processors: int, *jobs: tuple[int, int, int]) -> Workload:
    """Jobs as (submission, processors, run time), which they request."""
    submit, size, run = zip(*jobs, strict=True)
    return few_jobs(processors, submit, run, size)


def by_hand() -> hpcgym.Result:
    workload = workload_of(3, (0, 1, 100), (112, 2, 10))
    cluster = Cluster(
        3,
        idle_power_w=10,
        busy_power_w=100,
        shutdown_after_s=10,
        off_power_w=1,
        shutdown_time_s=4,
        boot_time_s=20,
    )
    return hpcgym.simulate(workload, "fcfs", cluster=cluster)


def test_by_hand_fcfs() -> None:
    """Three processors: off after 10 s, 4 s on the way off, 20 s on the way on.

    processor 0  busy 0-100, idle -110, switched off -114, on -134, busy -144
    processor 1  idle 0-10, switched off -14, off -112, switched on -132, idle -134, busy -144
    processor 2  idle 0-10, switched off -14, off -144

    Job 1 comes at 112 s and needs two: processor 0, on top, became idle at 100 s and is on its way
    off since 110 s: off at 114 s, on at 134 s. Processor 1 is on at 132 s and waits 2 s idle.
    """
    result = by_hand()
    assert result.start.tolist() == [0, 134]
    assert result.wait.tolist() == [0, 22]
    assert result.idle_seconds == {
        "idle": 2 * 10 + 10 + 2,  # processors 1 and 2 at first, 0 after job 0, 1 before job 1
        "switching_off": 3 * 4,
        "off": (112 - 14) + (144 - 14),  # processor 1 until it is called, processor 2 to the end
        "switching_on": 2 * 20,
    }
    metrics = result.metrics
    assert metrics["makespan_s"] == 144
    assert metrics["energy_busy_j"] == (100 + 2 * 10) * 100
    assert metrics["energy_idle_j"] == 32 * 10
    assert metrics["energy_off_j"] == 228 * 1
    assert metrics["energy_switching_j"] == 12 * 10 + 40 * 100  # off as idle, on as busy
    assert metrics["energy_j"] == 12000 + 320 + 228 + 4120
    assert metrics["mean_wait_s"] == 11
    assert metrics["mean_bsld"] == (1 + 3.2) / 2


def test_by_hand_easy_plans_as_if_processors_were_ready() -> None:
    """Two processors: off after 5 s in no time, 30 s on the way on.

    Job 0 holds one from 0 s to 100 s. Job 1 needs both and gets the reservation at 100 s. Job 2,
    submitted at 50 s, would end at 100 s, so that it is back-filled; but the other processor has
    been off since 5 s, so that it runs from 80 s to 130 s. Job 1 gets its processors then, but that
    of job 0 has been off since 105 s: it starts at 160 s, 60 s late. Job 3, too long to be
    back-filled at 60 s, comes last, both processors being on.
    """
    workload = workload_of(2, (0, 1, 100), (40, 2, 10), (50, 1, 50), (60, 1, 51))
    cluster = Cluster(2, shutdown_after_s=5, boot_time_s=30)
    result = hpcgym.simulate(workload, "easy", cluster=cluster)
    assert result.start.tolist() == [0, 160, 80, 170]
    # job 3 is the head from 130 s on, when it is known that job 1 will end at 170 s
    assert result.reserved_start.tolist() == [-1, 100, -1, 170]
    assert result.backfilled.tolist() == [False, False, True, False]
    assert result.idle_seconds == {
        # 5 s at first; 5 s after job 0; 30 s while job 1 waits for the other; 5 s after job 1
        "idle": 5 + 5 + 30 + 5,
        "switching_off": 0,
        "off": 45 + 25 + 46,
        "switching_on": 30 + 30,
    }


def test_the_delay_of_a_job_is_known_once_it_has_its_processors() -> None:
    """As above, with a third processor: when job 3 comes, job 1 cannot start before 130 s."""
    workload = workload_of(3, (0, 1, 100), (40, 3, 10), (50, 1, 50), (60, 1, 60))
    cluster = Cluster(3, shutdown_after_s=5, boot_time_s=30)
    result = hpcgym.simulate(workload, "easy", cluster=cluster)
    assert result.start.tolist() == [0, 180, 80, 90]
    assert result.reserved_start.tolist() == [-1, 100, -1, -1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"start": [0, 137]}, "job 1 starts at 137 s, when no job is submitted or ends"),
        ({"start": [0, 131]}, "job 1 starts at 131 s, when no job is submitted or ends"),
        ({"start": [0, 140]}, "the machine is idle at 112 s although jobs wait"),
        (
            {"idle_seconds": {"idle": 33}},
            "processors have no job for 312 s in all, not for idle 33",
        ),
        ({"idle_seconds": {"idle": -1, "off": 261}}, "not for idle -1, off 261"),
        ({"idle_seconds": {"idle": 31, "off": 229}}, "energy_idle_j is 320.0 instead of 310.0"),
        ({"idle_seconds": {"off": 227, "switching_on": 41}}, "energy_off_j is 228.0"),
        ({"idle_seconds": {"idle": 31, "switching_on": 41}}, "energy_switching_j is 4120.0"),
    ],
)
def test_what_validation_finds(change: dict[str, Any], words: str) -> None:
    result = by_hand()
    assert result.metrics
    validate_schedule(result)
    if "start" in change:
        change = {"start": np.array(change["start"])}
    else:
        change = {"idle_seconds": {**result.idle_seconds, **change["idle_seconds"]}}  # type: ignore[dict-item]
    wrong = dataclasses.replace(result, **change)
    vars(wrong)["metrics"] = result.metrics
    with pytest.raises(ScheduleError) as caught:
        validate_schedule(wrong)
    assert any(words in line for line in caught.value.violations)


def test_the_last_idle_second_still_counts_as_idle() -> None:
    for submit, start in ((110, 110), (111, 171)):
        workload = workload_of(1, (0, 1, 100), (submit, 1, 5))
        cluster = Cluster(1, shutdown_after_s=10, boot_time_s=60)
        assert hpcgym.simulate(workload, "easy", cluster=cluster).start.tolist() == [0, start]


def test_the_processors_that_became_idle_last_are_taken_first() -> None:
    # one processor runs jobs every 10 s: the other is never needed, and stays off
    workload = workload_of(2, *((time, 1, 5) for time in range(0, 1000, 10)))
    cluster = Cluster(2, shutdown_after_s=8, boot_time_s=60)
    result = hpcgym.simulate(workload, "fcfs", cluster=cluster)
    assert not result.wait.any()
    assert result.idle_seconds is not None
    assert result.idle_seconds["off"] == 995 - 8


def test_a_long_trace_agrees() -> None:
    """Many groups of idle processors, and queues."""
    workload = hpcgym.load_workload("lublin:jobs=400,processors=64,seed=3,load=0.8")
    cluster = Cluster(64, shutdown_after_s=300, shutdown_time_s=120, boot_time_s=180)
    for backfill, scheduler in (("none", "fcfs"), ("easy", "easy")):
        result = hpcgym.simulate(workload, scheduler, cluster=cluster)
        slow = schedule_slowly(workload, cluster, backfill)
        assert result.start.tolist() == slow.starts
        assert result.idle_seconds == slow.power.seconds()


def test_no_jobs() -> None:
    columns: dict[str, list[int]] = {
        name: [] for name in ("submit_time", "run_time", "requested_time", "requested_processors")
    }
    workload = Workload.from_columns(columns, processors=4)
    result = hpcgym.simulate(workload, "easy", cluster=Cluster(4, shutdown_after_s=0))
    assert result.metrics["energy_j"] == 0


# --- Errors ------------------------------------------------------------------------------------


def test_more_processor_seconds_than_are_counted() -> None:
    workload = workload_of(1, (0, 1, 10), (2**40, 1, 10))
    most = (2**63 - 1) // (2**40 + 10)
    result = hpcgym.simulate(workload, cluster=Cluster(most, shutdown_after_s=3))
    assert_accounts(result)
    with pytest.raises(WorkloadError, match="more processor seconds than the simulator counts"):
        hpcgym.simulate(workload, cluster=Cluster(most + 1, shutdown_after_s=3))


def test_powers_that_follow_from_others() -> None:
    cluster = Cluster(1, 10, 20, shutdown_after_s=np.int64(3))  # type: ignore[arg-type]
    assert (cluster.shutdown_w, cluster.boot_w) == (10.0, 20.0)
    assert type(cluster.shutdown_after_s) is int
    cluster = Cluster(1, 10, 20, shutdown_power_w=3, boot_power_w=np.float32(4))  # type: ignore[arg-type]
    assert (cluster.shutdown_w, cluster.boot_w) == (3.0, 4.0)
