"""validate_schedule accepts what the oracle schedules and finds each way of breaking it."""

from types import SimpleNamespace

import numpy as np
import pytest
from drawing import given, settings
from few_jobs import few_jobs
from plain_results import PLAIN
from strategies import cases

from hpcgym import simulate
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.rules import Scheduler
from hpcgym.validation.validate import ScheduleError, validate_schedule
from hpcgym.workload.model import Workload

FCFS = {
    "policy": "fcfs",
    "backfill": "none",
    "backfill_order": "fcfs",
    "estimate": "requested",
    "correction": "requested",
    "threshold": None,
    "passes": "per-timestamp",
}
EASY = {**FCFS, "backfill": "easy"}
CONSERVATIVE = {**FCFS, "backfill": "conservative"}


def scheduled(workload, **words):
    """A stand-in for a Result, from the oracle."""
    words = {**FCFS, **words}
    jobs = simulate_pool(jobs_of(workload), workload.processors, **words)

    def column(value):
        return np.array([value(job) for job in jobs], dtype=np.int64)

    busy_s = sum(job.processors * job.actual for job in jobs)
    span = max(job.end for job in jobs) - min(job.submit for job in jobs)
    idle_j, busy_j = (workload.processors * span - busy_s) * 117.0, busy_s * 358.0
    return SimpleNamespace(
        workload=workload,
        cluster=SimpleNamespace(
            processors=workload.processors, groups=(), idle_power_w=117.0, busy_power_w=358.0
        ),
        scheduler=Scheduler(**words),
        start=column(lambda job: job.start),
        end=column(lambda job: job.end),
        run_time=column(lambda job: job.actual),
        wait=column(lambda job: job.start - job.submit),
        predicted_run_time=column(lambda job: job.predicted),
        backfilled=column(lambda job: job.backfilled).astype(bool),
        killed=column(lambda job: job.killed).astype(bool),
        reserved_start=column(lambda job: job.reserved_start),
        **PLAIN,
        begin=int(workload.submit_time[0]),
        metrics={
            "makespan_s": span,
            "energy_idle_j": idle_j,
            "energy_busy_j": busy_j,
            "energy_j": idle_j + busy_j,
        },
    )


def moved(result, job, start):
    """The same result with one job started at another time, consistent in itself otherwise."""
    starts = result.start.copy()
    starts[job] = start
    span = int((starts + result.run_time).max() - result.workload.submit_time.min())
    busy_s = int((result.workload.requested_processors * result.run_time).sum())
    idle_j = (result.cluster.processors * span - busy_s) * 117.0
    metrics = dict(result.metrics, makespan_s=span, energy_idle_j=idle_j)
    metrics["energy_j"] = metrics["energy_busy_j"] + idle_j
    return changed(
        result,
        start=starts,
        end=starts + result.run_time,
        wait=starts - result.workload.submit_time,
        metrics=metrics,
    )


def changed(result, **attributes):
    return SimpleNamespace(**{**vars(result), **attributes})


def with_entry(result, name, job, value):
    values = getattr(result, name).copy()
    values[job] = value
    return changed(result, **{name: values})


@pytest.fixture
def workload():
    """Four processors; job 1 blocks the queue, jobs 2 and 3 can be backfilled, job 4 is killed.

    EASY:         processor 3 |2 2 . . . 1 1 1 1 1
                  processor 2 |0 0 0 0 0 1 1 1 1 1
                  processor 1 |0 0 0 0 0 1 1 1 1 1 4 4 4
                  processor 0 |0 0 0 0 0 1 1 1 1 1 4 4 4   (one column: 10 s; job 3 follows job 2)
    """
    return Workload.from_columns(
        {
            "submit_time": [0, 0, 0, 10, 20],
            "requested_processors": [3, 4, 1, 1, 2],
            "run_time": [50, 50, 20, 30, 60],
            "requested_time": [50, 60, 20, 30, 30],
        },
        processors=4,
    )


def violations(result):
    with pytest.raises(ScheduleError) as caught:
        validate_schedule(result)
    return caught.value.violations


@pytest.mark.parametrize("words", [FCFS, EASY, CONSERVATIVE], ids=lambda words: words["backfill"])
def test_everything_that_applies_is_proved(workload, words):
    always = ("lengths", "submission", "capacity", "events", "predictions", "promises")
    always += ("energy", "progress")
    more = {
        "none": ("order", "backfilled"),
        "easy": ("reservations", "order", "backfilled"),
        "conservative": ("reservations", "backfilled"),
    }
    result = scheduled(workload, **words)
    assert validate_schedule(result) == always + more[words["backfill"]]


@settings(max_examples=300)
@given(cases())
def test_every_schedule_of_the_oracle_is_valid(case):
    workload, words = case
    proved = validate_schedule(scheduled(workload, **words))
    if words["backfill"] == "conservative" and words["estimate"] in ("requested", "clairvoyant"):
        assert "reservations" in proved


@settings(max_examples=100)
@given(cases())
def test_a_job_started_too_early_or_at_no_event_is_always_found(case):
    workload, words = case
    result = scheduled(workload, **words)
    events = {*workload.submit_time.tolist(), *result.end.tolist()}
    for job, start in enumerate(result.start.tolist()):
        slurm = result.scheduler.reserve.slurm
        by_clock = slurm is not None and (start + 1) % slurm.bf_interval == 0
        if start + 1 not in events and not by_clock:
            violations(moved(result, job, start + 1))
        violations(moved(result, job, int(workload.submit_time[job]) - 1))


def test_empty_workload():
    empty = Workload.from_columns({"submit_time": [], "run_time": []}, processors=2)
    nothing = np.array([], dtype=np.int64)
    result = SimpleNamespace(
        workload=empty,
        cluster=SimpleNamespace(processors=2, groups=(), idle_power_w=1.0, busy_power_w=2.0),
        scheduler=Scheduler(**EASY),
        **dict.fromkeys(("start", "end", "run_time", "wait", "predicted_run_time"), nothing),
        **dict.fromkeys(("backfilled", "killed"), nothing.astype(bool)),
        reserved_start=nothing,
        **PLAIN,
        begin=0,
        metrics=dict.fromkeys(("makespan_s", "energy_idle_j", "energy_busy_j", "energy_j"), 0),
    )
    assert "capacity" in validate_schedule(result)


def test_shapes(workload):
    short = scheduled(workload).start[:-1]
    assert violations(changed(scheduled(workload), start=short)) == (
        "start has shape (4,), the workload (5,)",
    )


def test_start_before_submission(workload):
    result = scheduled(workload, **EASY)
    assert result.start[3] == 20
    assert "job 3 starts at 0 s, before its submission at 10 s" in violations(moved(result, 3, 0))


def test_over_used_processors(workload):
    result = scheduled(workload, **EASY)
    found = violations(moved(result, 1, 20))
    assert "processors over-used: at 20 s running jobs hold 8 of 4" in found


def test_several_cases_are_counted(workload):
    result = scheduled(workload, **EASY)
    late = changed(result, killed=~result.killed)
    assert violations(late) == (
        "job 0 is marked as killed but ran to its own end (and 3 more)",
        "job 4 was killed at its requested time but is not marked",
    )


def test_job_killed_by_cleaning_counts_as_killed(workload):
    killed = np.array([False, True, False, False, False])
    cleaned = Workload.from_columns(dict(workload.columns), processors=4, killed=killed)
    result = scheduled(cleaned)
    assert "job 1 was killed at its requested time but is not marked" in violations(result)
    assert "lengths" in validate_schedule(with_entry(result, "killed", 1, True))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("run_time", 60, "job 4 has run time 60 s instead of 30 s"),
        ("end", 160, "job 4 ends at 160 s although it starts at 100 s and runs 30 s"),
        ("wait", 0, "job 4 has wait 0 s although it is submitted at 20 s and starts at 100 s"),
        ("predicted_run_time", 60, "job 4 is predicted to run 60 s instead of 30 s"),
    ],
)
def test_wrong_column(workload, name, value, message):
    result = scheduled(workload, **EASY)
    assert violations(with_entry(result, name, 4, value)) == (message,)


@pytest.mark.parametrize(
    ("estimate", "wrong"), [("clairvoyant", 60), ("ave2", 61), ("ave2", 0), ([1, 1, 1, 1, 1], 2)]
)
def test_wrong_prediction(workload, estimate, wrong):
    result = scheduled(workload, estimate=estimate)
    assert "predictions" in validate_schedule(result)
    found = violations(with_entry(result, "predicted_run_time", 1, wrong))
    assert found[0].startswith(f"job 1 is predicted to run {wrong} s")


def test_start_at_no_event(workload):
    result = scheduled(workload, **EASY)
    found = violations(moved(result, 4, 105))
    assert "job 4 starts at 105 s, when no job is submitted or ends" in found


@pytest.mark.parametrize("words", [EASY, CONSERVATIVE], ids=lambda words: words["backfill"])
def test_broken_reservation(workload, words):
    result = scheduled(workload, **words)
    assert result.reserved_start[1] == 50
    broken = with_entry(result, "reserved_start", 1, 40)
    assert violations(broken) == ("job 1 starts at 50 s although it was promised 40 s",)


def test_reservation_broken_by_an_over_run_is_no_violation(workload):
    words = {**EASY, "estimate": [20, 60, 20, 30, 30]}
    result = scheduled(workload, **words)
    assert result.reserved_start[1] < result.start[1]
    assert "reservations" not in validate_schedule(result)


def test_reservation_of_a_job_overtaken_by_policy_is_no_violation(workload):
    result = with_entry(scheduled(workload, **{**EASY, "policy": "lcfs"}), "reserved_start", 1, 0)
    assert "reservations" not in validate_schedule(result)


def test_promises_without_backfilling(workload):
    result = scheduled(workload)
    assert violations(with_entry(result, "reserved_start", 1, 50)) == (
        "job 1 is promised a start without backfilling",
    )
    marked = with_entry(result, "backfilled", 1, True)
    assert "job 1 is marked as backfilled without backfilling" in violations(marked)


def test_promise_missing_or_too_early(workload):
    result = scheduled(workload, **CONSERVATIVE)
    assert violations(with_entry(result, "reserved_start", 2, -1)) == (
        "job 2 has no reservation under conservative backfilling",
    )
    early = with_entry(result, "reserved_start", 4, 19)
    assert "job 4 is promised 19 s, before its submission at 20 s" in violations(early)


@pytest.mark.parametrize("name", ["makespan_s", "energy_idle_j", "energy_busy_j", "energy_j"])
def test_energy_that_does_not_add_up(workload, name):
    result = scheduled(workload)
    wrong = changed(result, metrics={**result.metrics, name: result.metrics[name] + 1})
    assert [line.split()[0] for line in violations(wrong)] == [name]


def test_waiting_on_an_idle_machine():
    two = Workload.from_columns(
        {
            "submit_time": [0, 0, 20],
            "requested_processors": [2, 2, 1],
            "run_time": [10, 10, 10],
            "requested_time": [10, 10, 10],
        },
        processors=2,
    )
    idle = moved(moved(scheduled(two, policy="wfp3"), 1, 20), 2, 30)
    assert violations(idle) == ("the machine is idle at 10 s although jobs wait (1)",)


@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
def test_first_of_the_queue_left_waiting_although_it_fits(backfill, passes):
    columns = {
        "submit_time": [0, 5],
        "requested_processors": [1, 1],
        "run_time": [20, 10],
        "requested_time": [20, 10],
    }
    two = Workload.from_columns(columns, processors=2)
    result = scheduled(two, backfill=backfill, policy="spf", passes=passes)
    assert violations(moved(result, 1, 20)) == (
        "at 5 s 1 processors are free and job 1, first in the queue, would fit",
    )


def test_unmarked_and_wrongly_marked_backfilling(workload):
    result = scheduled(workload, **EASY)
    assert result.backfilled.tolist() == [False, False, True, True, False]
    assert violations(with_entry(result, "backfilled", 3, False)) == (
        "job 3 starts ahead of the queue but is not marked",
    )
    assert violations(with_entry(result, "backfilled", 4, True)) == (
        "job 4 is marked as backfilled but overtakes no job",
    )


def test_starved_jobs_come_first():
    # Shortest first on one processor; job 0 is long and waits 40 s > 30 s when job 2 ends.
    columns = {
        "submit_time": [0, 0, 0, 30],
        "requested_processors": [1, 1, 1, 1],
        "run_time": [100, 10, 30, 5],
        "requested_time": [100, 10, 30, 5],
    }
    one = Workload.from_columns(columns, processors=1)
    result = scheduled(one, policy="spf", threshold=30)
    assert result.start.tolist() == [40, 0, 10, 140]
    assert "order" in validate_schedule(result)


def test_six_weights_of_a_pure_policy_are_that_policy(workload):
    weights = (0, 0, 0.5, 0, 0, 0)
    assert "order" in validate_schedule(scheduled(workload, policy=weights))
    mixed = (0, 0, 0.5, 0, 0, 0.5)
    assert "order" not in validate_schedule(scheduled(workload, policy=mixed))


def test_a_window_that_ends_where_nobody_waits_is_no_event_for_the_looks_of_slurm() -> None:
    """They are at 0, 30, 70 and 100 s: nothing happens from 30 to 70 s."""
    jobs = few_jobs(2, [0, 70, 70, 80], [10, 1000, 5, 20], [1, 1, 2, 1])
    rules = {"backfill": "slurm:bf_interval=30+bf_resolution=1", "maintenance": "35/36"}
    result = simulate(jobs, **rules)
    assert result.start.tolist() == [0, 70, 1070, 100]
    validate_schedule(result)


def test_who_comes_by_an_end_stands_behind_who_is_submitted_in_that_second() -> None:
    """With a pass after each event: at 10 s the last job comes first, and does not fit."""
    jobs = few_jobs(
        *(2, [0, 0, 1, 10], [10, 100, 5, 5], [1, 1, 1, 2]),
        job_number=[1, 2, 3, 4],
        preceding_job=[-1, -1, 1, -1],
        think_time=[-1, -1, 0, -1],
    )
    result = simulate(jobs, backfill="none", passes="per-event", dependencies="after")
    assert result.start.tolist() == [0, 0, 105, 100]
    validate_schedule(result)


def test_the_time_of_a_kept_reservation_may_pass_before_the_next_pass() -> None:
    """The first job's prediction expires: all reservations are made anew as the next job comes.

    A pass comes at the next end alone, at 85 s. The reservation of then, which has passed, still
    stands in the way of all others: nobody starts until the next job comes, at 110 s.
    """
    jobs = few_jobs(
        *(5, [35, 47, 54, 65, 78, 110], [50, 6, 8, 13, 24, 42], [3, 2, 5, 2, 3, 2]),
        requested=[100] * 6,
    )
    rules = {"policy": "lqf", "backfill": "conservative", "passes": "per-event"}
    rules |= {"estimate": [18, 7, 10, 10, 18, 9], "correction": "recursive-doubling"}
    result = simulate(jobs, **rules)
    assert result.start.tolist() == [35, 47, 152, 160, 160, 110]
    assert simulate(jobs, engine="reference", **rules).start.tolist() == result.start.tolist()
    validate_schedule(result)
