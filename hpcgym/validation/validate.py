"""Prove that a schedule is one its scheduler may produce, without trusting the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.restrictions import bound_submissions
from hpcgym.validation.books import (
    check_books,
    check_budgets,
    check_call_numbers,
    check_calls,
    check_caps,
    check_levels,
    check_nodes_alone,
    check_starts,
    check_states,
    killed_by_caps,
    lengths_at_frequencies,
)
from hpcgym.validation.corun import prove_coschedule
from hpcgym.validation.lost_runs import prove_failures, prove_preemption
from hpcgym.validation.passes import (
    check_backfilled,
    check_nodes,
    check_order,
    check_predictions,
    check_promises,
    check_reservations,
    check_units,
    first_waiting,
    known_beforehand,
    reservations_are_guaranteed,
    static_rank,
)
from hpcgym.validation.restrictions import (
    check_dependencies,
    check_quotas,
    check_submitted,
    check_windows,
    window_ends,
)
from hpcgym.validation.schedules import (
    Timeline,
    Times,
    check_beginning,
    check_capacity,
    check_energy,
    check_events,
    check_lengths,
    check_progress,
    check_submission,
    delays_s,
    timeline_of,
)
from hpcgym.workload.needs import needs_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

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


def validate_schedule(result: Result) -> tuple[str, ...]:
    """Prove from the workload and the start times that the schedule keeps its scheduler's rules.

    Everything is worked out again from ``result.workload``, ``result.cluster``,
    ``result.scheduler`` and ``result.start``; what else ``result`` holds is compared with it.
    Time O(n log n) for n jobs, memory O(n); on N nodes with R resources O(n N R) in the worst case,
    for *order*, and memory in proportion to all that jobs have of nodes.

    Proved of every schedule:

    - *lengths*: each job is as long as its run time, cut at its requested time, and at its
      predicted run time where that is the correction; at lower frequencies as their slowdowns make
      of it, whole seconds, rounded up. It ends that long after its start; ``wait`` is start -
      submission; ``killed`` marks the jobs that were cut, here or by cleaning the workload.
    - *submission*: no job starts before it is submitted.
    - *beginning*, of an extract: jobs that run at its beginning started when they did, and no other
      job starts before. What follows is proved from then on.
    - *capacity*: at no second do running jobs hold more processors than the cluster has.
    - *units*, on nodes: each job has exactly its units, on nodes that there are, each once.
    - *nodes*: at no second do running jobs hold more of any resource than a node has.
    - *events*: every job starts at a second in which a job is submitted or ends, or in which an
      extract begins; under ``backfill="slurm"`` also when the queue is looked at by the clock, or
      on nodes may be, a number of intervals after an event.
    - *calls*, in place of *events* where a dispatcher takes time: every job starts when the answer
      to a call is there, and was submitted when it was asked. Calls do not overlap, take as long as
      the rule says, if that is a number, and are made when a job is submitted or ends or, if
      that was while the dispatcher was thinking, when its answer is there.
    - *predictions*: ``predicted_run_time`` is the requested time, twice that, the actual run time
      or the given array (at least 1 s), as the scheduler's estimate says; between 1 s and the
      requested time where it is learned (the prediction itself is not worked out again), and so is
      ``policy_run_time``.
    - *promises*: ``reserved_start`` is -1 or not before the submission; without backfilling it is
      -1 throughout and no job is marked as backfilled; under conservative backfilling every job
      has one.
    - *states*, where nodes are switched: no job runs on a node that is off or being switched, and
      switching takes as long as it should.
    - *energy*: ``energy_idle_j``, ``energy_busy_j`` and ``energy_j`` of the metrics are the
      integrals of idle, busy and total power from the first submission to the last end, to
      twelve digits, and ``makespan_s`` is that span. Where processors are switched off, the
      energies follow from ``idle_seconds``, whose sum is that of all processors without a job.
      Where nodes have a power of their own, or that of jobs is measured, or nodes are off, the
      books close: the energy by state, by node, by job with the overhead, and the integral of power
      over time are the same to twelve digits. Each job is charged what its nodes draw at its
      level; on a node that it shares, from the part of its cores to the highest level.
    - *progress*: no job waits while the whole machine is idle, once all windows are over.
    - *dependencies*: a job that follows others is submitted once these have ended and its think
      time is over, in closed loop just then.
    - *quotas*: no job starts that would exceed one.
    - *submitted*, under quotas of submitted jobs: of no quota do more run or wait, and each job is
      submitted as soon as its quotas let it, in the order in which they were due. The latter where
      jobs have numbers of their own.
    - *windows*: no job runs within a window on the nodes that it closes, nor more than it leaves of
      a pool's processors. Jobs start also when one ends.

    Under limits, ``result.limits``, jobs start also when a limit begins or ends, when a meter is
    looked at and when nodes have been switched; they may be killed when a cap that kills begins.
    In place of *progress* this is proved, by the power of the books:

    - *alone*: no two jobs share a node.
    - *levels*: jobs run at frequencies that ``power`` uses.
    - *caps*: whenever the power is above a cap that holds, no job runs that was given its nodes
      since it was announced; and once it was below, it is never above again.
    - *budgets*: no more is used in a period than its budget, if a job runs in it.

    Where jobs share nodes, ``result.coschedule``, times are proved to the tick, and beside
    *lengths*, *units*, *events*, *predictions*, *promises*, *energy* and *progress* these:

    - *places*: each job lies as the rule ``allocation`` says, on as many nodes as it needs.
    - *parts*: no node has more parts taken than it has; who is to be alone is alone.
    - *work*: the integral of each job's rate, worked out again from who was beside whom when, is
      its compact run time, but for the last tick.
    - *reservations*: as below, under EASY by submission where the true speedups are known.

    Of a schedule that another scheduler made, ``result.replayed_on``, *events*, *progress* and all
    that follows from passes is not proved: it has passes of its own.

    Where nodes fail, ``result.lost``, *capacity*, *units*, *nodes*, *events*, *energy*, *order* and
    *backfilled* are proved of all runs, lost ones too; jobs start also when a node fails or is
    repaired, and may wait on an idle machine of which a node is down. *reservations* are proved of
    promises for times before the first failure. Beside these:

    - *runs*: the runs of a job follow each other, the last one is whole, and each other one ends
      when a node fails that it has, the first to do so.
    - *states*: no job runs on a node that is down; the schedule says of all failures that the nodes
      are off.

    Where jobs stop others, ``preemption``, *capacity*, *units*, *nodes*, *events*, *quotas*,
    *windows*, *energy* and *progress* are proved of all runs, also of those that were stopped, and
    *dependencies* of jobs; nothing that follows from the order of passes. A cancelled job may be
    shorter than its run time. Beside these:

    - *runs*: the runs of a job follow each other, and the last one is whole, or cancelled. Where
      jobs are suspended, ``result.pieces``, the pieces of each add up to its run time.
    - *preemption*: each run that was stopped ended when a job started that may stop it, and that
      has a node of its own then, if there are nodes. Suspended jobs of a pool go on once they fit
      beside what runs, and beside suspended jobs that may stop them. On nodes (*nodes*) they go on
      where they ran, and nobody has their memory meanwhile.

    Where switching processors off or on takes time, a job is given its processors at a pass, and
    starts once they are on: at once, or ``boot_time_s`` to ``boot_time_s + shutdown_time_s`` later.
    Then *events* and *progress* allow for these delays, and nothing is checked that follows from
    passes: the scheduler plans as if processors were ready at once, so that a job may miss its
    reservation, and the schedule does not tell at which pass a job left the queue.

    Nor is it where the order of the queue came from outside, as in an environment, or where a
    dispatcher chose what starts; of the latter *promises* and *progress* are not proved either.

    Proved where it follows from the schedule:

    - *reservations*: no job starts after its ``reserved_start``. Guaranteed, and checked, where no
      job runs longer than its predicted run time, under conservative backfilling with any policy
      and under EASY and ``depth:K`` with the policy FCFS, where only the first that waits is
      promised a time (any backfill order). Elsewhere a promise may be broken by an
      over-run, a job of higher priority that came later, or one that waited too long.
    - *order*: whenever a pass is over, the first waiting job in the primary order does not fit the
      free processors, or nodes. Checked unless backfilling is conservative, for policies whose
      order does not change with time (FCFS, LCFS, and by processors, requested time, area or their
      ratio, with or without a starvation threshold) and look at run times that are not learned;
      for per-event passes with a threshold only after terminations, because not every submission
      is followed by a pass.
    - *backfilled*: the jobs marked as backfilled are exactly those that start while one before
      them in the primary order keeps waiting. Checked for the same policies with any kind of
      backfilling and per-timestamp passes.

    Not proved: that every job that could be backfilled was, the backfill order, the corrections
    of predictions, the primary order of policies that change with time, what single processors
    without a job do, and that jobs have the very nodes that the allocation chooses.

    Parameters
    ----------
    result : what :func:`hpcgym.simulate` returns.

    Returns
    -------
    proved : the names above, in that order, that were checked and hold.

    Raises
    ------
    ScheduleError : with one line for each property that does not hold.
    HpcgymError : no result.
    """
    if not hasattr(result, "start"):
        raise HpcgymError(
            f"validate_schedule takes what hpcgym.simulate returns, not a {type(result).__name__}"
        )
    _check_shapes(result)
    if result.coschedule is not None:
        return _proved(dict(_of_shared_nodes(result)))
    actual = np.minimum(result.workload.run_time, result.workload.requested_time)
    killed = result.scheduler.correction == "kill"
    full_speed = np.minimum(actual, result.predicted_run_time) if killed else actual
    length = lengths_at_frequencies(result, full_speed)
    by_caps = killed_by_caps(result, length)
    length = np.where(by_caps, result.run_time, length)
    full_speed = np.where(by_caps, 0, full_speed)
    if result.scheduler.preemption is not None and not result.replayed_on:
        return _proved(dict(prove_preemption(result, actual, length)))
    if result.lost is not None:
        return _proved(dict(prove_failures(result, actual, length)))
    line = timeline_of(result, length, window_ends(result))
    needs = None  # on a pool
    if result.cluster.groups:
        needs = needs_of(result.workload, result.cluster.resources)
    found = dict(_of_every_schedule(result, actual, full_speed, length, line, needs))
    # the order of an impossible schedule means nothing
    sound = not any(found.values())
    found |= _of_passes(result, actual, length, line, needs, sound)
    return _proved(found)


Proofs = Iterator[tuple[str, list[str]]]  # what is looked at, and what is wrong with it


def _proved(found: dict[str, list[str]]) -> tuple[str, ...]:
    """Return what was looked at, or raise a ScheduleError of all that is wrong with it."""
    violations = [text for texts in found.values() for text in texts]
    if violations:
        raise ScheduleError(violations)
    return tuple(found)


def _of_shared_nodes(result: Result) -> Proofs:
    """Look at a schedule in which jobs share nodes."""
    yield from prove_coschedule(result)
    actual = np.minimum(result.workload.run_time, result.workload.requested_time)
    yield from _of_restrictions(result)
    yield "predictions", check_predictions(result, actual)
    yield "promises", check_promises(result)


def _of_restrictions(result: Result) -> Proofs:
    """Look at what quotas bound, and when jobs come that follow others or waited for places."""
    if result.scheduler.quota:
        yield "quotas", check_quotas(result)
    if result.scheduler.dependencies != "none":
        yield "dependencies", check_dependencies(result)
    if bound_submissions(result.scheduler.quota):
        yield "submitted", check_submitted(result)


def _of_every_schedule(
    result: Result,
    actual: Times,
    full_speed: Times,
    length: Times,
    line: Timeline,
    needs: Times | None,
) -> Proofs:
    """Look at what holds whatever the rules of the scheduler are."""
    delays = delays_s(result)
    yield "lengths", check_lengths(result, length, full_speed)
    yield "submission", check_submission(result)
    if result.workload.initial is not None:
        yield "beginning", check_beginning(result)
    yield "capacity", check_capacity(result, line)
    if needs is not None:
        wrong = check_units(result.allocation, needs, result.cluster.nodes)
        yield "units", wrong
        if result.allocation is not None and not wrong:
            yield "nodes", check_nodes(result, needs, result.allocation)
    if result.scheduler.maintenance and (needs is None or not wrong):
        yield "windows", check_windows(result)
    yield from _of_restrictions(result)
    limited = result.limits is not None
    if result.dispatching is not None:
        yield "calls", check_calls(result, line, delays)
    elif not result.replayed_on:
        wrong = check_starts(result, line) if limited else check_events(result, line, delays)
        yield "events", wrong
    yield "predictions", check_predictions(result, actual)
    if result.scheduler.dispatcher is None:
        yield "promises", check_promises(result)
    if result.node_states is not None:
        yield "states", check_states(result)
    if result.keeps_books:
        yield "energy", check_books(result.from_begin)
    else:
        yield "energy", check_energy(result, line.time, line.used)
    if limited:
        yield from _of_limits(result, line)
    elif result.scheduler.dispatcher is None and not result.replayed_on:
        # up to the end of the last window a job may wait for it, whatever is idle
        excused = line.time < window_ends(result).max(initial=-1)
        if _may_have_passed(result, length):
            excused[:] = True
        yield "progress", check_progress(line, delays, excused)


def _may_have_passed(result: Result, length: Times) -> bool:
    """Tell whether the time of a reservation that is kept may have passed before the next pass.

    Where a prediction expires all are made anew at the next submission, but a pass comes after the
    next end alone.
    """
    rules = result.scheduler
    return (
        rules.reserve.conservative
        and rules.passes == "per-event"
        and bool((result.predicted_run_time < length).any())
    )


def _of_limits(result: Result, line: Timeline) -> Proofs:
    """Look at what limits are to keep."""
    yield "alone", check_nodes_alone(result)
    yield "levels", check_levels(result)
    yield "caps", check_caps(result)
    yield "budgets", check_budgets(result)


def _of_passes(
    result: Result,
    actual: Times,
    length: Times,
    line: Timeline,
    needs: Times | None,
    sound: bool,
) -> Proofs:
    """Look at what some schedulers guarantee, where the schedule tells why a job waited."""
    rules, workload = result.scheduler, result.workload
    if delays_s(result) != (0, 0) or result.outside or rules.dispatcher is not None:
        return
    if rules.quota:  # a job may wait for its quota
        return
    if result.replayed_on:  # its passes are where it made them
        return
    if result.limits is not None:  # a job may wait for power
        return
    if reservations_are_guaranteed(result, length):
        yield "reservations", check_reservations(result)
    times = known_beforehand(rules.policy_estimate, workload.requested_time, actual)
    # run times that are learned change while jobs wait
    rank = None if times is None else static_rank(workload, rules.policy, times)
    if rank is None or not sound:
        return
    ties = len(np.unique(workload.submit_time)) < len(workload)
    if ties and rules.moves_submissions and rules.passes == "per-event":
        return  # who comes by an end comes behind who is submitted in that second
    submit, threshold = workload.submit_time, rules.threshold
    first = first_waiting(submit, threshold, rank, line.time, line.submit, line.start)
    if not rules.reserve.conservative and not rules.maintenance:  # for which a job may wait
        yield "order", check_order(result, line, rank, first, needs)
    if rules.passes == "per-timestamp":
        yield "backfilled", check_backfilled(result, line, rank, first)


# --- What follows from workload and start times alone ------------------------------------------


def _check_shapes(result: Result) -> None:
    """Raise unless every per-job array has one entry a job, and calls of jobs are such."""
    n = len(result.workload)
    wrong = [
        f"{name} has shape {np.shape(getattr(result, name))}, the workload {(n,)}"
        for name in _PER_JOB
        if np.shape(getattr(result, name)) != (n,)
    ]
    wrong += check_call_numbers(result)
    if wrong:
        raise ScheduleError(wrong)
