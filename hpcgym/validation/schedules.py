"""Proofs for any schedule, whatever made it, for :mod:`hpcgym.validation.validate`."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.scheduler.backfilling import NEVER
from hpcgym.scheduler.restrictions import are_budgets
from hpcgym.workload.extracts import decided

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.runs import LostRuns
    from hpcgym.scheduler.restrictions import Preemption
    from hpcgym.workload.model import Initial


# --- What can be proved of processors that are switched off ---------------------------------------
#
# The energy of nodes with a power of their own is looked at in :mod:`hpcgym.validation.books`.

Times = NDArray[np.int64]  # seconds
_RELATIVE_ENERGY_ERROR = 1e-12  # a few roundings of double precision


def delays_s(result: Result) -> tuple[int, int]:
    """Return the least and the longest delay of a job that waits for processors [s].

    Both are 0 where no job can be late.
    """
    if result.idle_seconds is None:
        return 0, 0
    boot = result.cluster.boot_time_s
    return boot, boot + result.cluster.shutdown_time_s


def started_by_event(start: Times, events: Times, delays: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which jobs may have been given their processors at one of the times of events.

    Parameters
    ----------
    start : (n_jobs,) start times.
    events : (n_events,) strictly increasing times of submissions and ends.
    delays : as of :func:`delays_s`.
    """
    least, most = delays
    at_once = np.isin(start, events)
    latest = events[np.maximum(np.searchsorted(events, start - least, "right") - 1, 0)]
    late = start - latest
    return at_once | ((late >= least) & (late <= most))


def check_energy(result: Result, span: float, busy: float, error: float = 0.0) -> list[str]:
    """Compare the makespan and the energies with what follows from the powers of processors.

    Parameters
    ----------
    span : from the first submission to the last end [s].
    busy : processor seconds with a job.
    error : of the most that could be drawn, that sums of rounded times may have.
    """
    cluster, metrics = result.cluster, result.metrics
    seconds = {"idle": cluster.processors * span - busy}
    if result.idle_seconds is not None:
        without_job, seconds = seconds["idle"], dict(result.idle_seconds)
        if min(seconds.values()) < 0 or sum(seconds.values()) != without_job:
            parts = ", ".join(f"{name} {value}" for name, value in seconds.items())
            return [f"processors have no job for {without_job} s in all, not for {parts}"]
    expected: dict[str, float] = {
        "makespan_s": span,
        "energy_idle_j": seconds["idle"] * cluster.idle_power_w,
        "energy_busy_j": busy * cluster.busy_power_w,
    }
    if result.idle_seconds is not None:
        expected["energy_off_j"] = seconds["off"] * cluster.off_power_w
        expected["energy_switching_j"] = (
            seconds["switching_off"] * cluster.shutdown_w + seconds["switching_on"] * cluster.boot_w
        )
    expected["energy_j"] = sum(joules for name, joules in expected.items() if name[0] == "e")
    highest = max(cluster.busy_power_w, cluster.idle_power_w, 1)
    most = error * cluster.processors * span * highest
    return [
        f"{name} is {metrics[name]} instead of {value}"
        for name, value in expected.items()
        if not math.isclose(metrics[name], value, rel_tol=_RELATIVE_ENERGY_ERROR, abs_tol=most)
    ]


# --- Proofs for any schedule ----------------------------------------------------------------------

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Timeline:
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

    @property
    def span(self) -> int:
        """From the first time to the last [s]."""
        return int(self.time[-1] - self.time[0]) if self.time.size else 0

    @property
    def busy(self) -> int:
        """Processor seconds with a job, as Python's integer: the sum may pass 2**63."""
        return sum(map(operator.mul, self.used[:-1].tolist(), np.diff(self.time).tolist()))


Down = tuple[Times, Times, Times]  # nodes, and from and up to which place in a line each is down


class Case(NamedTuple):
    """A schedule run by run: where none is lost or suspended, each job is one run.

    Attributes
    ----------
    result : the schedule, of n_jobs.
    runs : all of its runs as if each was a job.
    job, last : (n_runs,) whose run it is, and whether it is the last one of its job.
    actual, length : (n_jobs,) [s] the run time cut at the requested time, and how long the job is
        to be. What was cancelled, or killed by a cap, is as long as it is.
    cancelled : (n_jobs,) whether the job was.
    reopens : (n_ends,) [s] ends of windows at which jobs wait.
    line : when something happens to runs and machine.
    needs : (n_runs, 1 + R) what runs need of nodes; None on a pool.
    lost : runs that ended before their jobs; None where none can.
    stops : which jobs may stop others; None: none.
    down : when nodes are down; None: never.
    """

    result: Result
    runs: Result
    job: Times
    last: Mask
    actual: Times
    length: Times
    cancelled: Mask
    reopens: Times
    line: Timeline
    needs: Times | None
    lost: LostRuns | None
    stops: Preemption | None
    down: Down | None


def timeline_of(result: Result, length: Times, changes: Times | None = None) -> Timeline:
    """Lay submissions, starts and ends on one axis of distinct times.

    So are times of ``changes`` (n_changes,) of the machine: there is a pass as after an end.

    Of an extract the axis begins where it does: jobs that ran or waited then are submitted then,
    and the former start. Where the scheduler goes on, it has looked at these jobs before: nothing
    is submitted then but what is.
    """
    workload, start = result.workload, result.start
    n = len(workload)
    end, submit = start + length, workload.submit_time
    new = np.ones(n, np.bool_)
    if workload.initial is not None:
        if _goes_on(result, workload.initial):
            new = submit >= workload.initial.begin
        start, submit = (np.maximum(times, workload.initial.begin) for times in (start, submit))
    others = np.zeros(0, np.int64) if changes is None else changes
    time, place = np.unique(np.concatenate((submit, start, end, others)), return_inverse=True)
    at_submit, at_start, at_end = place[:n], place[n : 2 * n], place[2 * n : 3 * n]

    used = over_time(time.size, at_start, at_end, workload.requested_processors)
    waiting = over_time(time.size, at_submit, at_start)
    submission, termination = np.zeros(time.size, np.bool_), np.zeros(time.size, np.bool_)
    submission[at_submit[new]] = True
    termination[at_end] = termination[place[3 * n :]] = True
    return Timeline(time, used, waiting, submission, termination, at_submit, at_start, at_end)


def over_time(size: int, begin: Times, end: Times, amount: Times | int = 1) -> Times:
    """Return the sum at each of ``size`` places of amounts that last from one up to another.

    ``begin`` and ``end`` are (n,), and so is ``amount`` unless all have the same.
    """
    # int64 throughout: bincount's weights would pass through double precision
    change = np.zeros(size + 1, np.int64)
    np.add.at(change, begin, amount)
    np.subtract.at(change, end, amount)
    return np.cumsum(change)[:size]


def held_together(
    group: Times, begin: Times, end: Times, amount: Times | int = 1
) -> tuple[Times, Times, Times]:
    """Return changes, by group and time: whose they are, when [s], and what the group has then.

    Parameters
    ----------
    group, begin, end : (n,) the group of each holder, and from when to when it holds.
    amount : (n,) or (n, R) the held amounts; or one amount for all.

    Returns
    -------
    group, time : (2 n,), ends before begins of one second.
    held : (2 n,) or (2 n, R).
    """
    amount = np.broadcast_to(amount, (len(group), *np.shape(amount)[1:]))
    group, time = np.tile(group, 2), np.concatenate((end, begin))
    sign = np.repeat([-1, 1], len(begin))
    order = np.lexsort((sign, time, group))
    # each group ends with nothing, so that sums may go on from group to group
    return group[order], time[order], np.cumsum(np.concatenate((-amount, amount))[order], axis=0)


def _goes_on(result: Result, initial: Initial) -> bool:
    """Return whether an extract goes on under the same scheduler as before.

    If jobs wait and none runs, as in a part of an extract, it begins anew.
    """
    ongoing = initial.ongoing
    waits = ~initial.running & (result.workload.submit_time < initial.begin)
    return (
        ongoing is not None
        and ongoing.rules == result.scheduler.describe()
        and ongoing.cluster == result.cluster
        and bool(initial.running.any() or not waits.any())
    )


def cases(wrong: Mask, message: str, *values: NDArray[Any]) -> list[str]:
    """Return no line, or one about the first case that is wrong, with the number of others."""
    where = np.flatnonzero(wrong)
    if where.size == 0:
        return []
    first = int(where[0])
    text = message.format(first, *(value[first] for value in values))
    return [text if where.size == 1 else f"{text} (and {where.size - 1:,} more)"]


def check_lengths(result: Result, length: Times, full_speed: Times) -> list[str]:
    """Compare run times, ends, waits and killed flags with the workload.

    ``full_speed`` is how long jobs take at the highest frequency.
    """
    workload = result.workload
    paused = 0 if result.suspended is None else result.suspended
    cut = workload.killed | (workload.run_time > full_speed)
    limit = "predicted" if result.scheduler.correction == "kill" else "requested"
    return [
        *cases(
            result.run_time != length,
            "job {} has run time {} s instead of {} s",
            result.run_time,
            length,
        ),
        *cases(
            result.end != result.start + length + paused,
            "job {} ends at {} s although it starts at {} s and runs {} s",
            result.end,
            result.start,
            length,
        ),
        *cases(
            result.wait != result.start + paused - workload.submit_time,
            "job {} has wait {} s although it is submitted at {} s and starts at {} s",
            result.wait,
            workload.submit_time,
            result.start,
        ),
        *cases(result.killed & ~cut, "job {} is marked as killed but ran to its own end"),
        *cases(cut & ~result.killed, f"job {{}} was killed at its {limit} time but is not marked"),
    ]


def check_submission(result: Result) -> list[str]:
    """Find jobs that start before their submission."""
    submit = result.workload.submit_time
    return cases(
        result.start < submit,
        "job {} starts at {} s, before its submission at {} s",
        result.start,
        submit,
    )


def check_beginning(result: Result) -> list[str]:
    """Find jobs that ran when the extract began and are moved, and others that start before."""
    initial = result.workload.initial
    assert initial is not None
    return [
        *cases(
            initial.running & (result.start != initial.start),
            "job {} starts at {} s, although it runs at the beginning since {} s",
            result.start,
            initial.start,
        ),
        *cases(
            ~initial.running & (result.start < initial.begin),
            f"job {{}} starts at {{}} s, before the extract begins at {initial.begin} s",
            result.start,
        ),
    ]


def check_capacity(result: Result, line: Timeline) -> list[str]:
    """Find times at which more processors are used than there are."""
    processors = result.cluster.processors
    return cases(
        line.used > processors,
        f"processors over-used: at {{1}} s running jobs hold {{2}} of {processors}",
        line.time,
        line.used,
    )


def check_events(result: Result, line: Timeline, delays: tuple[int, int]) -> list[str]:
    """Find jobs that start when nothing is submitted and nothing ends, nor did before the delay."""
    start, happens = line.time[line.start], line.submission | line.termination
    if result.scheduler.reserve.slurm is not None:
        all_every = result.scheduler.reserve.slurm.sched_interval
        happens = happens | _looked_at(result, line) | (line.time % all_every == 0)
    by_event = started_by_event(start, line.time[happens], delays)
    wrong = decided(result.workload) & ~by_event
    return cases(wrong, "job {} starts at {} s, when no job is submitted or ends", start)


def _looked_at(result: Result, line: Timeline) -> Mask:
    """Return at which times Slurm's rules look at the jobs that wait, (n_times,).

    That is so many seconds after the last look if jobs waited then or something has happened since,
    else at the next event.
    """
    slurm, initial = result.scheduler.reserve.slurm, result.workload.initial
    assert slurm is not None
    if slurm.bf_interval == NEVER:
        return np.zeros(line.time.size, np.bool_)
    every, look, waits = slurm.bf_interval, -1, False
    if result.allocation is not None:
        return _may_be_looked_at(line, every, initial, _clocks(result))
    if initial is not None:
        begun = line.time.size > 0 and line.time[0] == initial.begin
        look = initial.begin + (0 if begun else every)  # that at the beginning is over, in vain
        if _goes_on(result, initial):
            assert initial.ongoing is not None
            assert initial.ongoing.looks is not None
            look = initial.ongoing.looks[1]
            waits = bool((~initial.running & (result.workload.submit_time < initial.begin)).any())
    happens, waiting = (line.submission | line.termination).tolist(), (line.waiting > 0).tolist()
    looked = np.zeros(line.time.size, np.bool_)
    for k, time in enumerate(line.time.tolist()):
        due = look
        if look < 0:
            due = time
        elif time > look:
            due = look + -(-(time - look) // every) * every if waits else max(time, look + every)
        looked[k] = due == time and (waits or happens[k])
        if looked[k] or happens[k]:
            look = due + every * (due == time)
        waits = waiting[k]
    return looked


def _clocks(result: Result) -> list[tuple[int, int]]:
    """Return when time alone makes Slurm's rules look: how often, and how long after that [s]."""
    of_usage, of_quotas = result.scheduler.fair_share, result.scheduler.reserve.counts_time_s
    clocks = [] if of_usage is None else [(of_usage.period_s, 1)]
    clocks += [(of_quotas, 0)] if result.scheduler.quota else []
    budgets = are_budgets(result.scheduler.quota)
    clocks += [(result.scheduler.reserve.counts_use_s, 1)] if budgets else []
    return [(period, after) for period, after in clocks if period]


def _may_be_looked_at(
    line: Timeline, every: int, initial: Initial | None, clocks: list[tuple[int, int]]
) -> Mask:
    """Return at which times Slurm's rules may look at the jobs that wait on nodes, (n_times,).

    Whether it goes on looking depends on its plans, which a schedule does not tell. But it begins
    at an event, or as a clock makes it, and goes on so many seconds after.
    """
    happens = line.submission | line.termination
    phases = set() if initial is None else {initial.begin % every}
    if initial is not None and initial.ongoing is not None and initial.ongoing.looks is not None:
        phases.add(initial.ongoing.looks[1] % every)
    may, last = np.zeros(line.time.size, np.bool_), 0
    for k, time in enumerate(line.time.tolist()):
        if happens[k]:
            phases.add(time % every)
        for period, after in clocks:
            first = last + (after - last) % period
            phases.update(at % every for at in range(first, time + 1, period)[:every])
        last = time
        may[k] = time % every in phases
    return may


def check_progress(line: Timeline, delays: tuple[int, int], excused: Mask) -> list[str]:
    """Find times at which jobs wait and nothing runs, nor will after the longest delay.

    ``excused`` (n_times,) says where that may be.
    """
    starts = line.time[np.unique(line.start)]
    following = np.searchsorted(starts, line.time, "right")
    none_soon = np.ones(line.time.size, np.bool_)
    later = following < starts.size
    none_soon[later] = starts[following[later]] > line.time[later] + delays[1]
    return cases(
        (line.waiting > 0) & (line.used == 0) & none_soon & ~excused,
        "the machine is idle at {1} s although jobs wait ({2})",
        line.time,
        line.waiting,
    )
