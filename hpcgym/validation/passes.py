"""Proofs of passes: nodes, orders of the queue, promises, and what a pass leaves waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.elementary import log
from hpcgym.validation.schedules import Down, Mask, Timeline, Times, cases, held_together, over_time
from hpcgym.workload.extracts import decided

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.runs import Allocation


# --- What can be proved of jobs on nodes ----------------------------------------------------------
#
# An allocation is cells: so many units of a job on a node. N nodes, R resources, m cells.

Ints = NDArray[np.int64]
Cells = NDArray[np.int32] | NDArray[np.int64]


def check_units(allocation: Allocation | None, needs: Ints, n_nodes: int) -> list[str]:
    """Find jobs that do not have exactly their units, on nodes that there are.

    Parameters
    ----------
    allocation : what the schedule says.
    needs : (n_jobs, 2 + R) units of each job, the demand of each unit, and how many of them one
        node may have.
    n_nodes : of the machine.
    """
    if allocation is None:
        return ["the machine has nodes, but the schedule does not tell which jobs have which"]
    first, node, units = allocation.first, allocation.node, allocation.units
    violations = check_cells(first, node, units, len(needs))
    if violations:
        return violations
    job = owner_of(first)
    violations = check_owned(job, node, n_nodes)
    violations += cases(units < 1, "job {1} has {2} units on node {3}", job, units, node)
    placed = np.zeros(len(needs), np.int64)
    np.add.at(placed, job, units)
    most = needs[job, -1]
    text = "job {1} has {2} units on node {3}, which may have {4} of it"
    violations += cases(units > most, text, job, units, node, most)
    text = "job {} has {} units on nodes instead of {}"
    return violations + cases(placed != needs[:, 0], text, placed, needs[:, 0])


def check_cells(first: Ints, node: Cells, units: Cells, n: int) -> list[str]:
    """Find cells that are not those of n jobs, one after the other."""
    m = len(node)
    if first.shape != (n + 1,) or node.shape != units.shape or (first[0], first[-1]) != (0, m):
        return [f"the allocation of {n} jobs and {m} cells has first of shape {first.shape}"]
    return cases(np.diff(first) < 0, "the cells of job {} end before they begin")


def check_owned(job: Ints, node: Cells, n_nodes: int) -> list[str]:
    """Find cells on nodes that there are not, and jobs that have a node twice; both (m,)."""
    order = np.lexsort((node, job))
    twice = np.zeros(len(node), np.bool_)
    twice[1:] = (np.diff(job[order]) == 0) & (np.diff(node[order]) == 0)
    none = (node < 0) | (node >= n_nodes)
    return [
        *cases(none, "job {1} is on node {2}, which does not exist", job, node),
        *cases(twice, "job {1} has node {2} twice", job[order], node[order]),
    ]


def check_nodes(result: Result, needs: Ints, allocation: Allocation) -> list[str]:
    """Find nodes whose jobs use more of a resource than they have, at any second.

    Time O(m R + m log m), memory O(m R).
    """
    cluster = result.cluster
    job, node, amounts = _cells(allocation, needs)
    node, time, used = held_together(node, result.start[job], result.end[job], amounts)
    last = np.ones(node.size, np.bool_)  # of all that happens to a node in a second
    last[:-1] = (np.diff(node) != 0) | (np.diff(time) != 0)
    violations: list[str] = []
    capacity, names = cluster.capacity, np.array(cluster.node_names, object)
    for r, name in enumerate(cluster.resources):
        has = capacity[node, r]
        text = f"node {{1}} over-used: at {{2}} s running jobs hold {{3}} of {{4}} {name}"
        violations += cases(last & (used[:, r] > has), text, names[node], time, used[:, r], has)
    return violations


def fits_nodes(
    result: Result,
    needs: Ints,
    allocation: Allocation,
    line: Timeline,
    job: Times,
    asked: Mask,
    down: Down | None = None,
) -> Mask:
    """Return whether a job would find room on the free nodes, at each time that is asked.

    Parameters
    ----------
    line : the schedule's times.
    job : (n_times,) which job is meant at each of them.
    asked : (n_times,) where to look; elsewhere the answer is no. Each place costs O(N R).
    down : nodes, and from and up to which place in the line each is down.

    Returns
    -------
    fits : (n_times,)
    """
    owner, node, amounts = _cells(allocation, needs)
    begin, end = line.start[owner], line.end[owner]
    if down is not None:
        node, begin, end = (
            np.concatenate(pair) for pair in zip((node, begin, end), down, strict=True)
        )
        amounts = np.concatenate((amounts, result.cluster.capacity[down[0]]))
    place = np.concatenate((begin, end))
    order = np.argsort(place, kind="stable")
    node = np.concatenate((node, node))[order]
    change = np.concatenate((-amounts, amounts))[order]
    places = np.flatnonzero(asked)
    stops = np.searchsorted(place[order], places, "right").tolist()
    free = result.cluster.capacity.copy()
    fits = np.zeros(asked.shape, np.bool_)
    done = 0
    for at, stop in zip(places.tolist(), stops, strict=True):
        np.add.at(free, node[done:stop], change[done:stop])
        done = stop
        units, *demand, most = needs[job[at]].tolist()
        held = np.full(len(free), min(units, most))
        for r, need in enumerate(demand):
            if need:
                np.minimum(held, free[:, r] // need, out=held)
        fits[at] = held.sum() >= units
    return fits


def owner_of(first: Ints) -> Ints:
    """Return the job of each cell, (m,)."""
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


def _cells(allocation: Allocation, needs: Ints) -> tuple[Ints, Ints, Ints]:
    """Return job (m,), node (m,) and amounts of the resources (m, R) of each cell."""
    job = owner_of(allocation.first)
    amounts = allocation.units.astype(np.int64)[:, np.newaxis] * needs[job, 1:-1]
    return job, allocation.node.astype(np.int64), amounts


# --- The first job of the queue at each time of a schedule ----------------------------------------

_NEVER = 2**53  # s; no job waits longer


def is_fcfs(policy: Any) -> bool:
    """Return whether a policy, by name or by six weights, is first come, first served."""
    if isinstance(policy, str):
        return policy.lower() == "fcfs"
    if not isinstance(policy, (tuple, list, np.ndarray)):
        return False
    weights = np.asarray(policy, dtype=float)
    return weights.shape == (6,) and weights[2] > 0 and np.flatnonzero(weights).size == 1


class StaticQueue(NamedTuple):
    """The order of a queue, if it never changes but that jobs that wait too long come first.

    Attributes
    ----------
    submit : (n_jobs,) [s] what waiting counts from.
    threshold : wait in seconds beyond which a job comes first, or None.
    rank, number : (n_jobs,) places in the primary order, and in that of submission.
    """

    submit: Times
    threshold: float | None
    rank: Ints
    number: Ints

    def place(self, wait: Ints) -> Ints:
        """Return the places of jobs that have waited so long: starved ones by number first."""
        late = wait > (np.inf if self.threshold is None else self.threshold)
        return np.where(late, self.number, self.rank + len(self.rank))

    def job(self, place: Ints) -> Ints:
        """Return the jobs that have these places; -1 for a place that no job has."""
        return np.concatenate((np.argsort(self.number), np.argsort(self.rank), [-1]))[place]


def first_waiting(queue: StaticQueue, line: Timeline) -> Ints:
    """Return the place of the first waiting job in primary order at each time, (n_times,).

    Places are those of a queue; 2 * n_jobs where no job waits. A job waits from its submission to
    its start, the latter excluded.
    """
    n, time = len(queue.rank), line.time
    threshold = _NEVER if queue.threshold is None else min(queue.threshold, _NEVER)
    # A job joins those that come first, in submission order, once its wait exceeds the threshold.
    after = queue.submit + float(threshold)
    starved = np.minimum(np.searchsorted(time, after, side="right"), line.start)
    starved = np.maximum(starved, line.submit)  # one that waits again may have waited so before
    first = np.concatenate((line.submit, starved))
    value = np.concatenate((queue.rank + n, queue.number))
    places = least_over(time.size, first, np.concatenate((starved, line.start)), value, 2 * n)
    return places.astype(np.int64)


def least_over(
    size: int, first: Ints, stop: Ints, value: NDArray[Any], nothing: float
) -> NDArray[Any]:
    """Return the least value over each of so many places; value i lies over first[i]:stop[i].

    A range is two of a power of two that may overlap; these are halved until they are places. Time
    O((size + values) log size). ``nothing`` is where no value is.
    """
    power = np.frexp(np.maximum(stop - first, 0).astype(np.float64))[1] - 1  # rounded down
    least = np.full(size, nothing, value.dtype)
    for k in range(int(power.max(initial=-1)), -1, -1):
        of_k = power == k
        np.minimum.at(least, first[of_k], value[of_k])
        np.minimum.at(least, stop[of_k] - 2**k, value[of_k])
        half = 2**k // 2
        if half > 0:
            least[half:] = np.minimum(least[half:], least[:-half])
    return least


# --- What was predicted and promised, for :mod:`hpcgym.validation.validate` -----------------------


def check_predictions(result: Result, actual: Times) -> list[str]:
    """Compare the predicted run times with the scheduler's estimates."""
    requested, violations = result.workload.requested_time, []
    rules = result.scheduler
    for estimate, predicted, what in (
        (rules.estimate, result.predicted_run_time, "predicted to run"),
        (rules.policy_estimate, result.policy_run_time, "ordered as if it ran"),
        (rules.candidate_estimate, result.candidate_run_time, "judged as if it ran"),
    ):
        if estimate is None:
            continue
        expected = known_beforehand(estimate, requested, actual)
        if predicted is None:
            if expected is None and not result.replayed_on:  # which does not tell them
                violations.append(f"there are no predictions of jobs that are {what}")
        elif expected is None:
            wrong = (predicted < 1) | (predicted > requested)
            text = f"job {{}} is {what} {{}} s although it requests {{}} s"
            violations += cases(wrong, text, predicted, requested)
        else:
            text = f"job {{}} is {what} {{}} s instead of {{}} s"
            violations += cases(predicted != expected, text, predicted, expected)
    return violations


def known_beforehand(estimate: Any, requested: Times, actual: Times) -> Times | None:
    """Return the predictions of an estimate that does not learn, None of one that does."""
    if isinstance(estimate, str):
        return {
            "requested": requested,
            "double-requested": np.minimum(2 * requested, 2**53),  # the clock's last second
            "clairvoyant": actual,
        }.get(estimate)
    if hasattr(estimate, "predict_one"):
        return None
    # what is less than a microsecond below a whole second is that second
    seconds: Times = np.clip(np.asarray(estimate, float) + 1e-6, 1, 2**53).astype(np.int64)
    return seconds


def check_promises(result: Result) -> list[str]:
    """Check which jobs may and must be promised a start, and that none lies before submission."""
    reserved, submit = result.reserved_start, result.workload.submit_time
    promised = reserved != -1
    violations = cases(
        promised & (reserved < submit),
        "job {} is promised {} s, before its submission at {} s",
        reserved,
        submit,
    )
    reserve = result.scheduler.reserve
    if reserve.depth == 0:
        violations += cases(promised, "job {} is promised a start without backfilling")
    if reserve.kind == "none":
        violations += cases(result.backfilled, "job {} is marked as backfilled without backfilling")
    if reserve.conservative:
        text = "job {} has no reservation under conservative backfilling"
        violations += cases(~promised & decided(result.workload), text)
    return violations


def reservations_are_guaranteed(result: Result, length: Times) -> bool:
    """Return whether a promised start can never be missed under this scheduler and workload."""
    if bool(np.any(result.predicted_run_time < length)):
        return False
    scheduler = result.scheduler
    if scheduler.reserve.conservative:
        return True
    hold = scheduler.hold
    if hold is not None and hold.looks_at_estimate:
        times = known_beforehand(scheduler.policy_estimate, result.workload.requested_time, length)
        if times is None:  # what a job holds back may grow as it waits
            return False
    if scheduler.reserve.slurm is not None:  # the jobs that count as ending together change
        return False
    single = scheduler.reserve.one or scheduler.reserve.anew
    single &= scheduler.relax is None
    return single and is_fcfs(scheduler.policy)


def check_reservations(result: Result) -> list[str]:
    """Find jobs that start later than promised."""
    bound, initial = result.reserved_start != -1, result.workload.initial
    if initial is not None and initial.ongoing is not None:
        # others were promised beside jobs that are no part of the extract
        bound = bound & (result.workload.submit_time >= initial.begin)
    return cases(
        bound & (result.start > result.reserved_start),
        "job {} starts at {} s although it was promised {} s",
        result.start,
        result.reserved_start,
    )


# --- What a pass leaves waiting, and what it marks ------------------------------------------------


def served(result: Result, line: Timeline, *, changes: bool) -> Mask:
    """Return at which times the queue is served to the end with what is free then, (n_times,).

    ``changes`` : whether time may change who comes first. In passes per event that counts, as not
    every submission is followed by a pass: only one of a job that starts, or would fit.
    """
    slurm = result.scheduler.reserve.slurm
    happens: Mask = line.submission | line.termination
    if result.scheduler.passes == "per-event" and changes:
        last = np.full(line.time.size, -1)  # to be submitted at each time
        np.maximum.at(last, line.submit, np.arange(len(line.submit)))
        came = np.flatnonzero(line.submission & (last >= 0))
        job = last[came]
        fits = result.workload.requested_processors[job] <= (
            result.cluster.processors - line.used[came]
        )
        happens = line.termination.copy()
        happens[came] |= fits | (line.start[job] == came)
    if slurm is None:
        return happens
    # a pass of Slurm's may leave out jobs, as it has looked at enough
    started = np.bincount(line.start, minlength=len(line.time))
    happens &= (started <= slurm.default_queue_depth) | (line.time % slurm.sched_interval == 0)
    return happens


def check_order(
    result: Result,
    line: Timeline,
    head: Times,
    passed: Mask,
    ahead: Times,
    needs: Times | None,
    down: Down | None = None,
) -> list[str]:
    """Find times at which the first waiting job would fit the free processors, or nodes.

    Parameters
    ----------
    head : (n_times,) the first job that waits, -1: none, or another that fits nowhere.
    passed : (n_times,) when to look.
    ahead : (n_times,) processors that were free when it was its turn, and are not at the end.
    down : as :func:`fits_nodes` takes it.
    """
    free = result.cluster.processors - line.used + ahead
    if down is not None:
        cores = result.cluster.capacity[down[0], 0]
        free -= over_time(line.time.size, down[1], down[2], cores)
    asked = np.flatnonzero((head >= 0) & passed)
    needed = _needed(result, head[asked], line.time[asked])
    if needed is None:
        return []
    fits = np.zeros(line.time.size, np.bool_)
    fits[asked] = needed <= free[asked]
    what = "processors are free"
    if needs is not None and result.allocation is not None:
        fits = fits_nodes(result, needs, result.allocation, line, head, fits, down)
        what = "cores are free on nodes"
    text = f"at {{1}} s {{2}} {what} and job {{3}}, first in the queue, would fit"
    return cases(fits, text, line.time, free, head)


def _needed(result: Result, job: Times, time: Times) -> Times | None:
    """Return how many processors must be free for jobs to start at these times, both (n,).

    None where that follows from run times that are learned.
    """
    workload, hold = result.workload, result.scheduler.hold
    q: Times = workload.requested_processors[job]
    if hold is None:
        return q
    actual = np.minimum(workload.run_time, workload.requested_time)
    predicted = known_beforehand(result.scheduler.policy_estimate, workload.requested_time, actual)
    if predicted is None and hold.looks_at_estimate:
        return None
    p = workload.requested_time[job].astype(np.float64)
    e = p if predicted is None else predicted[job]
    x = {"requested": p, "policy_estimate": e, "both": np.sqrt(p * e)}[hold.by]
    z = np.clip(log(x / hold.from_s) / log(hold.factor), 0, 1)
    most = result.cluster.processors
    back = hold.share * most * z / (1 + (time - workload.submit_time[job]) / hold.erode_s)
    # where rounding decides, rather too many than a job called late that is not
    needed: Times = np.minimum(most, q + np.rint(back * (1 + 1e-12) + 1e-12).astype(np.int64))
    return needed


def check_backfilled(result: Result, overtook: Mask, known: Mask) -> list[str]:
    """Compare the backfilled marks with who starts ahead of a job that waits on.

    Both (n_jobs,): who does, and whose mark is known.
    """
    return [
        *cases(
            overtook & ~result.backfilled & known,
            "job {} starts ahead of the queue but is not marked",
        ),
        *cases(
            result.backfilled & ~overtook & known,
            "job {} is marked as backfilled but overtakes no job",
        ),
    ]
