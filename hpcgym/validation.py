"""Prove that a schedule is one its scheduler may produce, without trusting the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.power_checks import check_energy, delays_s, started_by_event
from hpcgym.static_order import first_waiting, place_in_order, policy_name, static_rank

if TYPE_CHECKING:
    from hpcgym.result import Result
    from hpcgym.workload.model import Workload

Times = NDArray[np.int64]  # (n_jobs,), seconds
Mask = NDArray[np.bool_]

_PER_JOB = (
    "start",
    "end",
    "run_time",
    "wait",
    "predicted_run_time",
    "backfilled",
    "killed",
    "reserved_start",
)


class ScheduleError(HpcgymError):
    """A schedule breaks its rules.

    Attributes
    ----------
    violations : one line for each rule broken, with the number of cases and the first of them.
    """

    def __init__(self, violations: list[str]):
        self.violations = tuple(violations)
        super().__init__("not a valid schedule: " + "; ".join(violations))


@dataclass(frozen=True)
class _Timeline:
    """The state of machine and queue at each time something happens, once all has happened.

    ``time`` is strictly increasing, shape (n_times,); ``used`` processors, ``waiting`` jobs and
    the flags ``submission`` and ``termination`` have that shape too. ``submit``, ``start`` and
    ``end`` are each job's places in it, shape (n_jobs,).
    """

    time: Times
    used: Times
    waiting: Times
    submission: Mask
    termination: Mask
    submit: Times
    start: Times
    end: Times


def validate_schedule(result: Result) -> tuple[str, ...]:
    """Prove from the workload and the start times that the schedule keeps its scheduler's rules.

    Everything is worked out again from ``result.workload``, ``result.cluster``,
    ``result.scheduler`` and ``result.start``; what else ``result`` holds is compared with it.
    Time O(n log n) for n jobs, memory O(n).

    Proved of every schedule:

    - *lengths*: each job is as long as its run time, cut at its requested time; it ends that long
      after its start; ``wait`` is start - submission; ``killed`` marks the jobs that were cut,
      here or by the cleaning of the workload.
    - *submission*: no job starts before it is submitted.
    - *capacity*: at no second do running jobs hold more processors than the cluster has.
    - *events*: every job starts at a second in which a job is submitted or ends.
    - *predictions*: ``predicted_run_time`` is the requested time, twice that, the actual run time
      or the given array (at least 1 s), as the scheduler's estimate says; between 1 s and the
      requested time where it is learned (the prediction itself is not worked out again), and so is
      ``policy_run_time``.
    - *promises*: ``reserved_start`` is -1 or not before the submission; without backfilling it is
      -1 throughout and no job is marked as backfilled; under conservative backfilling every job
      has one.
    - *energy*: ``energy_idle_j``, ``energy_busy_j`` and ``energy_j`` of the metrics are the
      integrals of idle, busy and total power from the first submission to the last end, to
      twelve digits, and ``makespan_s`` is that span. Where processors are switched off, the
      energies follow from ``idle_seconds``, whose sum is that of all processors without a job.
    - *progress*: no job waits while the whole machine is idle.

    Where switching processors off or on takes time, a job is given its processors at a pass, and
    starts once they are on: at once, or ``boot_time_s`` to ``boot_time_s + shutdown_time_s`` later.
    Then *events* and *progress* allow for these delays, and nothing is promised, nor checked, that
    follows from passes: the scheduler plans as if processors were ready at once, so that a job may
    miss its reservation, and the schedule does not tell at which pass a job left the queue.

    Nor is it where the order of the queue came from outside, as in an environment.

    Proved where it follows from the schedule:

    - *reservations*: no job starts after its ``reserved_start``. Guaranteed, and checked, where no
      job runs longer than its predicted run time, under conservative backfilling with any
      policy and under EASY with the policy FCFS (any backfill order). Elsewhere a promise may be
      broken by an over-run, or by a job of higher priority that was submitted later.
    - *order*: whenever a pass is over, the first waiting job in the primary order does not fit the
      free processors. Checked without backfilling and under EASY, for policies whose order does
      not change with time (FCFS, LCFS, and by processors, requested time, area or their ratio,
      with or without a starvation threshold) and look at run times that are not learned; for
      per-event passes with a threshold only after terminations, because not every submission is
      followed by a pass.
    - *backfilled*: the jobs marked as backfilled are exactly those that start while one before
      them in the primary order keeps waiting. Checked for the same policies with any kind of
      backfilling and per-timestamp passes.

    Not proved: that every job that could be backfilled was, the backfill order, the corrections
    of predictions, the primary order of policies that change with time, and what single
    processors without a job do.

    Parameters
    ----------
    result : what :func:`hpcgym.simulate` returns.

    Returns
    -------
    proved : the names above, in that order, that were checked and hold.

    Raises
    ------
    ScheduleError : with one line for each property that does not hold.
    """
    _check_shapes(result)
    violations: list[str] = []
    proved: list[str] = []

    def note(name: str, found: list[str]) -> None:
        violations.extend(found)
        if not found:
            proved.append(name)

    length = _effective_length(result.workload)
    line = _timeline(result.workload, result.start, length)
    delays = delays_s(result)
    note("lengths", _check_lengths(result, length))
    note("submission", _check_submission(result))
    note("capacity", _check_capacity(result, line))
    note("events", _check_events(line, delays))
    note("predictions", _check_predictions(result, length))
    note("promises", _check_promises(result))
    note("energy", check_energy(result, line.time, line.used))
    note("progress", _check_progress(line, delays))
    at_once = delays == (0, 0) and not result.outside
    if at_once and _reservations_are_guaranteed(result, length):
        note("reservations", _check_reservations(result))
    estimate = result.scheduler.policy_estimate
    times = _known_beforehand(estimate, result.workload.requested_time, length)
    rank = None  # run times that are learned change while jobs wait
    if times is not None:
        rank = static_rank(result.workload, result.scheduler.policy, times)
    # the order of an impossible schedule means nothing
    if at_once and rank is not None and not violations:
        submit_time, threshold = result.workload.submit_time, result.scheduler.threshold
        first = first_waiting(submit_time, threshold, rank, line.time, line.submit, line.start)
        if result.scheduler.backfill != "conservative":
            note("order", _check_order(result, line, rank, first))
        if result.scheduler.passes == "per-timestamp":
            note("backfilled", _check_backfilled(result, line, rank, first))
    if violations:
        raise ScheduleError(violations)
    return tuple(proved)


# --- What follows from workload and start times alone ------------------------------------------


def _check_shapes(result: Result) -> None:
    """Raise unless every per-job array has one entry for each job of the workload."""
    n = len(result.workload)
    wrong = [
        f"{name} has shape {np.shape(getattr(result, name))}, the workload {(n,)}"
        for name in _PER_JOB
        if np.shape(getattr(result, name)) != (n,)
    ]
    if wrong:
        raise ScheduleError(wrong)


def _effective_length(workload: Workload) -> Times:
    """Return how long each job runs: its run time, cut at the requested time."""
    length: Times = np.minimum(workload.run_time, workload.requested_time)
    return length


def _timeline(workload: Workload, start: Times, length: Times) -> _Timeline:
    """Lay submissions, starts and ends on one axis of distinct times."""
    n = len(workload)
    end = start + length
    time, place = np.unique(np.concatenate((workload.submit_time, start, end)), return_inverse=True)
    at_submit, at_start, at_end = place[:n], place[n : 2 * n], place[2 * n :]

    def running_total(places: Times, amounts: Times | None = None) -> Times:
        # int64 throughout: bincount's weights would pass through double precision.
        changes = np.zeros(time.size, np.int64)
        np.add.at(changes, places, 1 if amounts is None else amounts)
        return np.cumsum(changes)

    processors = workload.requested_processors
    used = running_total(at_start, processors) - running_total(at_end, processors)
    waiting = running_total(at_submit) - running_total(at_start)
    submission, termination = np.zeros(time.size, np.bool_), np.zeros(time.size, np.bool_)
    submission[at_submit] = True
    termination[at_end] = True
    return _Timeline(time, used, waiting, submission, termination, at_submit, at_start, at_end)


def _cases(wrong: Mask, message: str, *values: NDArray[Any]) -> list[str]:
    """Return no line, or one about the first case that is wrong, with the number of others."""
    where = np.flatnonzero(wrong)
    if where.size == 0:
        return []
    first = int(where[0])
    text = message.format(first, *(value[first] for value in values))
    return [text if where.size == 1 else f"{text} (and {where.size - 1:,} more)"]


# --- Properties of every schedule ----------------------------------------------------------------


def _check_lengths(result: Result, length: Times) -> list[str]:
    """Compare run times, ends, waits and killed flags with the workload."""
    workload = result.workload
    cut = workload.killed | (workload.run_time > workload.requested_time)
    return [
        *_cases(
            result.run_time != length,
            "job {} has run time {} s instead of {} s",
            result.run_time,
            length,
        ),
        *_cases(
            result.end != result.start + length,
            "job {} ends at {} s although it starts at {} s and runs {} s",
            result.end,
            result.start,
            length,
        ),
        *_cases(
            result.wait != result.start - workload.submit_time,
            "job {} has wait {} s although it is submitted at {} s and starts at {} s",
            result.wait,
            workload.submit_time,
            result.start,
        ),
        *_cases(result.killed & ~cut, "job {} is marked as killed but ran to its own end"),
        *_cases(cut & ~result.killed, "job {} was killed at its requested time but is not marked"),
    ]


def _check_submission(result: Result) -> list[str]:
    """Find jobs that start before their submission."""
    submit = result.workload.submit_time
    return _cases(
        result.start < submit,
        "job {} starts at {} s, before its submission at {} s",
        result.start,
        submit,
    )


def _check_capacity(result: Result, line: _Timeline) -> list[str]:
    """Find times at which more processors are used than there are."""
    processors = result.cluster.processors
    return _cases(
        line.used > processors,
        f"processors over-used: at {{1}} s running jobs hold {{2}} of {processors}",
        line.time,
        line.used,
    )


def _check_events(line: _Timeline, delays: tuple[int, int]) -> list[str]:
    """Find jobs that start when nothing is submitted and nothing ends, nor did before the delay."""
    start = line.time[line.start]
    by_event = started_by_event(start, line.time[line.submission | line.termination], delays)
    return _cases(~by_event, "job {} starts at {} s, when no job is submitted or ends", start)


def _check_predictions(result: Result, length: Times) -> list[str]:
    """Compare the predicted run times with the scheduler's estimates."""
    requested, found = result.workload.requested_time, []
    of_policy = result.policy_run_time
    rules = result.scheduler
    for estimate, predicted, what in (
        (rules.estimate, result.predicted_run_time, "predicted to run"),
        (rules.policy_estimate, of_policy, "ordered as if it ran"),
    ):
        expected = _known_beforehand(estimate, requested, length)
        if predicted is None:
            if expected is None:
                found.append("there are no predictions that the policy looked at")
        elif expected is None:
            wrong = (predicted < 1) | (predicted > requested)
            text = f"job {{}} is {what} {{}} s although it requests {{}} s"
            found += _cases(wrong, text, predicted, requested)
        else:
            text = f"job {{}} is {what} {{}} s instead of {{}} s"
            found += _cases(predicted != expected, text, predicted, expected)
    return found


def _known_beforehand(estimate: Any, requested: Times, length: Times) -> Times | None:
    """Return the predictions of an estimate that does not learn, None of one that does."""
    if isinstance(estimate, str):
        return {
            "requested": requested,
            "double-requested": 2 * requested,
            "clairvoyant": length,
        }.get(estimate)
    if hasattr(estimate, "predict_one"):
        return None
    seconds: Times = np.clip(np.asarray(estimate, float), 1, 2**53).astype(np.int64)
    return seconds


def _check_promises(result: Result) -> list[str]:
    """Check which jobs may and must be promised a start, and that none lies before submission."""
    reserved, submit = result.reserved_start, result.workload.submit_time
    promised = reserved != -1
    found = _cases(
        promised & (reserved < submit),
        "job {} is promised {} s, before its submission at {} s",
        reserved,
        submit,
    )
    if result.scheduler.backfill == "none":
        found += _cases(promised, "job {} is promised a start without backfilling")
        found += _cases(result.backfilled, "job {} is marked as backfilled without backfilling")
    if result.scheduler.backfill == "conservative":
        found += _cases(~promised, "job {} has no reservation under conservative backfilling")
    return found


def _check_progress(line: _Timeline, delays: tuple[int, int]) -> list[str]:
    """Find times at which jobs wait and nothing runs, nor will after the longest delay."""
    starts = line.time[np.unique(line.start)]
    following = np.searchsorted(starts, line.time, "right")
    none_soon = np.ones(line.time.size, np.bool_)
    some = following < starts.size
    none_soon[some] = starts[following[some]] > line.time[some] + delays[1]
    return _cases(
        (line.waiting > 0) & (line.used == 0) & none_soon,
        "the machine is idle at {1} s although jobs wait ({2})",
        line.time,
        line.waiting,
    )


# --- Properties that some schedulers guarantee ---------------------------------------------------


def _reservations_are_guaranteed(result: Result, length: Times) -> bool:
    """Return whether a promised start can never be missed under this scheduler and workload."""
    if bool(np.any(result.predicted_run_time < length)):
        return False
    scheduler = result.scheduler
    if scheduler.backfill == "conservative":
        return True
    return scheduler.backfill == "easy" and policy_name(scheduler.policy) == "fcfs"


def _check_reservations(result: Result) -> list[str]:
    """Find jobs that start later than promised."""
    return _cases(
        (result.reserved_start != -1) & (result.start > result.reserved_start),
        "job {} starts at {} s although it was promised {} s",
        result.start,
        result.reserved_start,
    )


def _check_order(result: Result, line: _Timeline, rank: Times, first: Times) -> list[str]:
    """Find times at which the first waiting job would fit the free processors."""
    n = len(result.workload)
    job_at = np.concatenate((np.arange(n), np.argsort(rank), [0]))  # place -> job
    job = job_at[first]
    passed = line.submission | line.termination
    if result.scheduler.passes == "per-event" and result.scheduler.threshold is not None:
        passed = line.termination
    free = result.cluster.processors - line.used
    fits = (first < 2 * n) & (result.workload.requested_processors[job] <= free)
    return _cases(
        passed & fits,
        "at {1} s {2} processors are free and job {3}, first in the queue, would fit",
        line.time,
        free,
        job,
    )


def _check_backfilled(result: Result, line: _Timeline, rank: Times, first: Times) -> list[str]:
    """Compare the backfilled marks with who was left waiting at each job's start."""
    wait = result.start - result.workload.submit_time
    overtook = first[line.start] < place_in_order(wait, result.scheduler.threshold, rank)
    return [
        *_cases(
            overtook & ~result.backfilled, "job {} starts ahead of the queue but is not marked"
        ),
        *_cases(
            result.backfilled & ~overtook, "job {} is marked as backfilled but overtakes no job"
        ),
    ]
