"""Prove that a schedule is one its scheduler may produce, without trusting the simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.schedule.schedule import ran_before, runs_of
from hpcgym.scheduler.restrictions import are_budgets, bound_submissions, weigh_time
from hpcgym.validation import books, corun, heads, lost_runs, passes, restrictions, schedules
from hpcgym.workload.extracts import decided
from hpcgym.workload.needs import needs_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.validation.heads import Heads
    from hpcgym.validation.schedules import Case, Times
    from hpcgym.validation.scores import Jobs

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
    for *order*, and memory in proportion to all that jobs have of nodes. Orders that change with
    time, *backfilling* and *any order* take time in proportion to the jobs that wait, or run, at
    each pass at which a job starts or would fit.

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
      energy by state, by node and by job and the power over time are those of
      :mod:`hpcgym.reference.energy`, which works them out anew, to twelve digits.
    - *progress*: no job waits while the whole machine is idle, once all windows are over, unless
      there are budgets.
    - *dependencies*: a job that follows others is submitted once these have ended and its think
      time is over, in closed loop just then.
    - *quotas*: no job starts that would exceed one.
    - *submitted*, under quotas of submitted jobs: jobs that run or wait never exceed a quota, and
      each job is submitted as soon as its quotas let it, in the order in which jobs were due. The
      latter is proved if jobs have different numbers.
    - *windows*: no job runs within a window on the nodes that it closes; on a pool jobs have no
      more processors than it leaves. Jobs start also when a window ends.

    Under limits, ``result.limits``, jobs start also when a limit begins or ends, when a meter is
    looked at and when nodes have been switched; they may be killed when a cap that kills begins.
    In place of *progress* this is proved, by the power of the books:

    - *alone*: no two jobs share a node.
    - *levels*: jobs run at frequencies that ``power`` uses.
    - *caps*: while the power is above a cap that holds, no job runs that was given its nodes since
      the cap was announced; once the power was below the cap, it is never above it again.
    - *budgets*: no more is used in a period than its budget, if a job runs in it.

    Where jobs share nodes, ``result.coschedule``, times are proved to the tick, and beside
    *lengths*, *units*, *events*, *predictions*, *promises*, *energy* and *progress* these:

    - *places*: each job is placed by the rule ``allocation``, on as many nodes as it needs.
    - *parts*: no node has more parts taken than it has; exclusive jobs are alone on their nodes.
    - *work*: the integral of each job's rate, computed again from the jobs beside it, is its
      compact run time, up to the last tick.
    - *reservations*: as below, under EASY by submission where the true speedups are known.

    For a schedule of another scheduler, ``result.replayed_on``, nothing is proved that follows from
    passes, such as *events* and *progress*: that scheduler has passes of its own.

    Where nodes fail, ``result.lost``, *capacity*, *units*, *nodes*, *events*, *energy*, *order* and
    *backfilled* are proved of all runs, lost ones too; jobs start also when a node fails or is
    repaired, and may wait on an idle machine if a node is down. *reservations* are proved for
    promised times before the first failure. Beside these:

    - *runs*: the runs of a job follow each other, the last one is whole, and each other one ends
      when the first of its nodes fails.
    - *states*: no job runs on a node that is down; in the schedule nodes are off while they are
      down.

    Where jobs stop others, ``preemption``, *capacity*, *units*, *nodes*, *events*, *quotas*,
    *windows*, *energy* and *progress* are proved of all runs, also of those that were stopped, and
    *dependencies* of jobs; nothing that follows from the order of passes. A cancelled job may be
    shorter than its run time. Beside these:

    - *runs*: the runs of a job follow each other, and the last one is whole, or cancelled. Where
      jobs are suspended, ``result.pieces``, the pieces of each add up to its run time.
    - *preemption*: each run that was stopped ended when a job started that may stop it, and that
      has a node of its own then, if there are nodes; or such a job waited when its grace time
      began. Suspended jobs of a pool go on once they fit
      beside what runs, and beside suspended jobs that may stop them. On nodes (*nodes*) they go on
      where they ran, and no other job has their memory meanwhile.

    Where switching processors off or on takes time, a job is given its processors at a pass, and
    starts once they are on: at once, or ``boot_time_s`` to ``boot_time_s + shutdown_time_s`` later.
    Then *events* and *progress* allow for these delays, and nothing is checked that follows from
    passes: the scheduler plans as if processors were ready at once, so that a job may miss its
    reservation, and the schedule does not tell at which pass a job left the queue. Nor is *events*
    under ``backfill="slurm"``, which looks by the clock, too.

    Nor is it if the order of the queue came from outside, as in an environment, or if a dispatcher
    chose the jobs that start; in the latter case *promises* and *progress* are not proved either.

    Proved where it follows from the schedule:

    - *reservations*: no job starts after its ``reserved_start``. Guaranteed, and checked, where no
      job runs longer than its predicted run time, under conservative backfilling with any policy
      and under EASY and ``depth:K`` with the policy FCFS, where only the first that waits is
      promised a time (any backfill order). Elsewhere a promise may be broken by an
      over-run, a job of higher priority that came later, or one that waited too long.
    - *order*: whenever a pass is over, the first waiting job in the primary order does not fit the
      free processors, or nodes; on a pool with per-timestamp passes, but under Slurm's rules, it
      did not fit beside those before it either. Checked unless backfilling is conservative, where
      the order is *told*: for all policies, weights and expressions that look at no fair share, and
      at run times that are requested, given, actual or by the typical ratio. The latter, and orders
      that change with time or look at the state, are worked out again at each pass. They are not
      told where jobs follow others, nodes fail, or under Slurm's rules; where run times are
      learned, or the state is looked at, in passes per event or an extract; where run times had
      been learned before; where free nodes are looked at, or free processors and some are held
      back. Where a predicted second depends on which of two jobs ended first that began and ended
      together, *any order* is proved of the pass. For per-event passes with a threshold, or an
      order that changes with time, only after ends, and submissions of jobs that start or would
      fit: not every submission is followed by a pass.
    - *backfilled*: the jobs marked as backfilled are exactly those that start while one before
      them in the primary order keeps waiting. Checked where the order is told, with any kind of
      backfilling and per-timestamp passes.
    - *backfilling*, on a pool under EASY and ``until-shadow`` where the order is told, without
      ``hold``, windows and the correction "predicted-again" of predictions that expire: jobs that
      start ahead of the first that waits do not delay its reservation, which follows from the
      predictions of running jobs and their corrections; and each job that waits on could not start
      when it was its turn in the backfill order. Without an order of backfilling that is told, and
      for per-event passes: it could not start after all others. With per-timestamp passes, and both
      orders told, each start follows from those before it.
    - *any order*, in place of these where the order is not told, also where an agent ordered the
      queue, ``result.outside_orders``: after each pass some waiting job does not fit the free
      processors, or nodes. Under the conditions of *backfilling* all waiting jobs that fit would
      delay the reservation of one that does not. Not under conservative backfilling and Slurm's,
      nor with ``hold``, windows or nodes that fail.

    None of these four is proved with quotas, limits, preemption or a dispatcher, where an agent
    says itself which jobs start, as in Backfill and Inspector, or after a proof above has failed.

    Not proved: that reservations are made as they should under conservative backfilling,
    ``depth:K`` and Slurm's, and on nodes; who comes first where the order is not told; predictions
    that are learned; what single processors without a job do; and that jobs have the very nodes
    that the allocation chooses.

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
    proofs = _of_runs(result) if result.coschedule is None else _of_shared_nodes(result)
    violations = [text for texts in proofs.values() for text in texts]
    if violations:
        raise ScheduleError(violations)
    return tuple(proofs)


Proofs = dict[str, list[str]]  # what is looked at -> what is wrong with it


def _of_shared_nodes(result: Result) -> Proofs:
    """Look at a schedule in which jobs share nodes."""
    actual = np.minimum(result.workload.run_time, result.workload.requested_time)
    return {
        **dict(corun.prove_coschedule(result)),
        **_of_restrictions(result, result),
        "predictions": passes.check_predictions(result, actual),
        "promises": passes.check_promises(result),
    }


def _of_restrictions(result: Result, runs: Result) -> Proofs:
    """Look at what quotas bound, and when jobs come that follow others or waited for places."""
    proofs = {}
    if result.scheduler.quota:
        # suspended jobs count all the while, and are not checked when they go on
        whole = result.suspended is not None
        proofs["quotas"] = restrictions.check_quotas(result if whole else runs)
    if result.scheduler.dependencies != "none":
        proofs["dependencies"] = restrictions.check_dependencies(result)
    if bound_submissions(result.scheduler.quota):
        proofs["submitted"] = restrictions.check_submitted(result)
    return proofs


def _of_runs(result: Result) -> Proofs:
    """Look at a schedule in which jobs share no nodes but by their units."""
    rules, workload, cluster = result.scheduler, result.workload, result.cluster
    stops = None if result.replayed_on else rules.preemption
    lost = result.lost if stops is None else result.interrupted
    if stops is not None and (
        lost is None or (result.suspended is None) == (stops.mode == "suspend")
    ):
        return {"units": ["the schedule does not tell which runs other jobs ended"]}
    proofs: Proofs = {}
    if lost is not None:
        proofs["units"] = lost_runs.check_shapes(result, lost, bool(cluster.groups))
        if proofs["units"]:
            return proofs

    actual = np.minimum(workload.run_time, workload.requested_time)
    killed = rules.correction == "kill"
    full_speed = np.minimum(actual, result.predicted_run_time) if killed else actual
    length = books.lengths_at_frequencies(result, full_speed)
    cancelled = np.zeros(len(length), np.bool_)
    if stops is not None and stops.mode == "cancel":
        cancelled = (result.run_time < length) & (result.run_time >= 1)
    cut = cancelled | books.killed_by_caps(result, length)
    length = np.where(cut, result.run_time, length)
    proofs["lengths"] = schedules.check_lengths(result, length, np.where(cut, 0, full_speed))

    runs, job, last = result, np.arange(len(length)), np.ones(len(length), np.bool_)
    reopens, down = restrictions.window_ends(result), None
    lasts, changes = length, [reopens]
    if lost is not None:
        runs, job = runs_of(result)
        last = lost_runs.last_runs(runs, job)
        lasts = np.where(last, (length - ran_before(result))[job], runs.run_time)
        changes += [lost.failures.time, lost.failures.repaired]
    if stops is not None:
        changes.append(lost_runs.exempt_until(runs, stops, np.array(lost_runs.called(result))[job]))
    changes.append(restrictions.openings(runs if result.suspended is None else result))
    changes.append(restrictions.countings(runs))
    line = schedules.timeline_of(runs, lasts, np.concatenate(changes))
    if result.suspended is not None:
        line = replace(line, waiting=line.waiting - lost_runs.suspended(line, job))
    needs = needs_of(workload, cluster.resources)[job] if cluster.groups else None
    if lost is not None:
        begin, end = np.searchsorted(line.time, (lost.failures.time, lost.failures.repaired))
        down = (lost.failures.node, begin, end)
    of_jobs = (actual, length, cancelled)
    case = schedules.Case(
        result, runs, job, last, *of_jobs, reopens, line, needs, lost, stops, down
    )
    proofs |= _of_times_and_places(case)
    if lost is None or not any(proofs.values()):  # energies of what cannot be mean nothing
        proofs |= _of_energy_and_limits(case)
        proofs |= _of_passes(case, sound=not any(proofs.values()))
    return proofs


def _of_times_and_places(case: Case) -> Proofs:
    """Look at when and where jobs run, and at what was known before."""
    result, runs, line, lost, needs = case.result, case.runs, case.line, case.lost, case.needs
    rules = result.scheduler
    proofs = {"submission": schedules.check_submission(result)}
    if lost is not None:
        proofs["submission"] += schedules.check_submission(runs)
    if result.workload.initial is not None and case.stops is None:
        proofs["beginning"] = schedules.check_beginning(_from_first_starts(case))
    proofs["capacity"] = schedules.check_capacity(runs, line)
    if needs is not None:
        proofs["units"] = passes.check_units(runs.allocation, needs, result.cluster.nodes)
    placed = not proofs.get("units")
    if needs is not None and runs.allocation is not None and placed:
        proofs["nodes"] = passes.check_nodes(runs, needs, runs.allocation)
        if lost is not None and result.suspended is not None:
            proofs["nodes"] += lost_runs.check_kept(result, lost)
        if lost is not None and case.stops is None:
            proofs["runs"] = lost_runs.check_runs(result, lost, case.length)
            proofs["states"] = lost_runs.check_down(result, lost) + books.check_states(runs)
    if rules.maintenance and placed:
        proofs["windows"] = restrictions.check_windows(runs)
    proofs |= _of_restrictions(result, runs)
    if lost is not None and case.stops is not None:
        proofs |= lost_runs.prove_stops(case)
    delays = schedules.delays_s(result)
    if result.dispatching is not None:
        if lost is None:
            proofs["calls"] = books.check_calls(result, line, delays)
    elif (rules.reserve.slurm is not None or weigh_time(rules.quota)) and any(delays):
        pass  # jobs start by the clock, too, and the schedule does not tell when one was chosen
    elif lost is not None or not result.replayed_on:
        wrong = schedules.check_events(runs, line, delays)
        proofs["events"] = wrong if result.limits is None else books.check_starts(result, line)
    proofs["predictions"] = passes.check_predictions(result, case.actual)
    if rules.dispatcher is None:
        proofs["promises"] = passes.check_promises(result)
    if result.node_states is not None and lost is None:
        proofs["states"] = books.check_states(result)
    return proofs


def _of_energy_and_limits(case: Case) -> Proofs:
    """Look at energies, at what limits are to keep, and whether jobs wait for nothing."""
    result, line, lost = case.result, case.line, case.lost
    proofs: Proofs = {}
    if result.keeps_books or (lost is not None and case.stops is None):
        proofs["energy"] = books.check_books(case.runs.from_begin)
        if lost is not None:
            proofs["energy"] += lost_runs.energies_of_runs(result, case.runs)
    else:
        proofs["energy"] = schedules.check_energy(result, line.span, line.busy)
    if result.limits is not None:
        proofs["alone"] = books.check_nodes_alone(result)
        proofs["levels"] = books.check_levels(result)
        proofs["caps"] = books.check_caps(result)
        proofs["budgets"] = books.check_budgets(result)
    elif result.scheduler.dispatcher is None and (lost is not None or not result.replayed_on):
        # up to the end of the last window a job may wait for it, whatever is idle
        excused = line.time < case.reopens.max(initial=-1)
        excused |= _may_have_passed(result, case.length) or are_budgets(result.scheduler.quota)
        if case.down is not None:
            excused |= schedules.over_time(line.time.size, *case.down[1:]) > 0
        proofs["progress"] = schedules.check_progress(line, schedules.delays_s(result), excused)
    return proofs


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


def _of_passes(case: Case, *, sound: bool) -> Proofs:
    """Look at what some schedulers guarantee, where the schedule tells why a job waited."""
    result, line, rules = case.result, case.line, case.result.scheduler
    proofs: Proofs = {}
    chosen = result.outside and not result.outside_orders
    if schedules.delays_s(result) != (0, 0) or chosen or rules.dispatcher is not None:
        return proofs
    # a job may wait for its quota, for power, or for one that stops it; and the passes of another
    # scheduler are where that made them
    if rules.quota or result.limits is not None or case.stops is not None or result.replayed_on:
        return proofs
    if not result.outside and passes.reservations_are_guaranteed(result, case.length):
        proofs["reservations"] = passes.check_reservations(_from_first_starts(case))
    if not sound:  # the order of an impossible schedule means nothing
        return proofs
    ties = len(np.unique(result.workload.submit_time)) < len(result.workload)
    if ties and rules.moves_submissions and rules.passes == "per-event":
        return proofs  # jobs that come by an end come behind others submitted in that second
    looked = heads.jobs_of(case)
    ahead = None if result.outside else _heads(case, looked)
    if ahead is None:
        if heads.has_some_order(case):
            proofs["any order"] = heads.check_any_order(case, np.ones_like(line.submission))
        return proofs
    if not rules.reserve.conservative and not rules.maintenance:  # for which a job may wait
        passed = ahead.told & passes.served(case.runs, line, changes=ahead.changes)
        of_pool = case.needs is None and rules.reserve.slurm is None
        past = ahead.ahead(case)
        if not of_pool or rules.passes == "per-event":  # where it is not known what was free before
            past = np.zeros_like(past)
        proofs["order"] = passes.check_order(
            case.runs, line, ahead.job, passed, past, case.needs, case.down
        )
        if heads.has_some_order(case):
            proofs["order"] += heads.check_any_order(case, ~ahead.told)
    if rules.passes == "per-timestamp":
        known = case.last & ahead.told[line.start]
        proofs["backfilled"] = passes.check_backfilled(case.runs, ahead.overtook, known)
    if heads.has_one_reservation(case):
        proofs["backfilling"] = heads.check_backfilling(case, ahead, looked)
    return proofs


def _heads(case: Case, looked: Jobs) -> Heads | None:
    """Return who is first of those that wait, and who overtakes it; None where it is not told."""
    result, runs, job, line = case.result, case.runs, case.job, case.line
    rules, submit = result.scheduler, result.workload.submit_time
    rank = heads.static_rank(rules.order, looked)
    if rank is None:
        return heads.heads_of(case, looked) if heads.is_told(rules.order, case, looked) else None
    # runs of a job never wait together: any order of them will do
    number, of_run = np.empty_like(job), np.empty_like(job)
    number[np.argsort(job, kind="stable")] = np.arange(len(job))
    of_run[np.argsort(rank[job], kind="stable")] = np.arange(len(job))
    queue = passes.StaticQueue(submit[job], rules.threshold, of_run, number)
    first = passes.first_waiting(queue, line)
    overtook = first[line.start] < queue.place(runs.start - queue.submit)
    overtook &= decided(runs.workload)
    changes = rules.threshold is not None
    return heads.Heads(queue.job(first), np.ones_like(line.submission), overtook, changes)


def _from_first_starts(case: Case) -> Result:
    """Return the schedule as its jobs began, with what it promised for before any node failed."""
    result, lost = case.result, case.lost
    if lost is None:
        return result
    first = result.start.copy()
    np.minimum.at(first, lost.job, lost.start)
    kept = result.reserved_start < lost.failures.time.min(initial=2**62)
    return replace(result, start=first, reserved_start=np.where(kept, result.reserved_start, -1))


# --- What follows from workload and start times alone ------------------------------------------


def _check_shapes(result: Result) -> None:
    """Raise unless every per-job array has one number a job, and calls of jobs are such."""
    n = len(result.workload)
    wrong = [
        f"{name} has shape {np.shape(getattr(result, name))}, the workload {(n,)}"
        for name in _PER_JOB
        if np.shape(getattr(result, name)) != (n,)
    ]
    wrong += [
        f"{name} has a value that is no number"
        for name in _PER_JOB
        if not np.isfinite(getattr(result, name)).all()
    ]
    wrong += books.check_call_numbers(result)
    if wrong:
        raise ScheduleError(wrong)
