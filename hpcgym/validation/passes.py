"""Proofs of passes: nodes, orders of the queue, promises, and what a pass leaves waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.validation.schedules import Mask, Timeline, Times, cases
from hpcgym.workload.extracts import decided
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.runs import Allocation


# --- What can be proved of jobs on nodes ----------------------------------------------------------
#
# An allocation is cells: so many units of a job on a node. N nodes, R resources, m cells.

Ints = NDArray[np.int64]
Down = tuple[Ints, Ints, Ints]


def check_units(allocation: Allocation | None, needs: Ints, n_nodes: int) -> list[str]:
    """Find jobs that do not have exactly their units, on nodes that there are.

    Parameters
    ----------
    allocation : what the schedule says.
    needs : (n_jobs, 1 + R) units of each job, and the demand of each unit.
    n_nodes : of the machine.
    """
    if allocation is None:
        return ["the machine has nodes, but the schedule does not tell who has which"]
    first, node, units = allocation.first, allocation.node, allocation.units
    n, m = len(needs), len(node)
    if first.shape != (n + 1,) or node.shape != units.shape or (first[0], first[-1]) != (0, m):
        return [f"the allocation of {n} jobs and {m} cells has first of shape {first.shape}"]
    found = cases(np.diff(first) < 0, "the cells of job {} end before they begin")
    if found:
        return found
    job = owner_of(first)
    found += cases(
        (node < 0) | (node >= n_nodes), "job {1} is on node {2}, which is none", job, node
    )
    found += cases(units < 1, "job {1} has {2} units on node {3}", job, units, node)
    order = np.lexsort((node, job))
    twice = np.zeros(m, np.bool_)
    twice[1:] = (np.diff(job[order]) == 0) & (np.diff(node[order]) == 0)
    found += cases(twice, "job {1} has node {2} twice", job[order], node[order])
    placed = np.zeros(n, np.int64)
    np.add.at(placed, job, units)
    text = "job {} has {} units on nodes instead of {}"
    return found + cases(placed != needs[:, 0], text, placed, needs[:, 0])


def check_nodes(result: Result, needs: Ints, allocation: Allocation) -> list[str]:
    """Find nodes of which more is used than they have, of any resource, at any second.

    Time O(m R + m log m), memory O(m R).
    """
    cluster = result.cluster
    job, node, amounts = _cells(allocation, needs)
    job, node = np.concatenate((job, job)), np.concatenate((node, node))
    taken = np.arange(node.size) < allocation.node.size  # what ends follows what starts
    time = np.where(taken, result.start[job], result.end[job])
    order = np.lexsort((taken, time, node))  # of one second, ends come first
    node, time = node[order], time[order]
    # no node begins with anything in use: what is given back in the end leaves 0
    used = np.cumsum(np.concatenate((amounts, -amounts))[order], axis=0)
    last = np.ones(node.size, np.bool_)  # of all that happens to a node in a second
    last[:-1] = (np.diff(node) != 0) | (np.diff(time) != 0)
    found: list[str] = []
    capacity, names = cluster.capacity, np.array(cluster.node_names, object)
    for r, name in enumerate(cluster.resources):
        has = capacity[node, r]
        text = f"node {{1}} over-used: at {{2}} s running jobs hold {{3}} of {{4}} {name}"
        found += cases(last & (used[:, r] > has), text, names[node], time, used[:, r], has)
    return found


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
        units, *demand = needs[job[at]].tolist()
        held = np.full(len(free), units)
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
    amounts = allocation.units.astype(np.int64)[:, np.newaxis] * needs[job, 1:]
    return job, allocation.node.astype(np.int64), amounts


# --- Who is first in the queue at each time of a schedule -----------------------------------------

_NEVER = 2**53  # s; no job waits longer

#: One non-zero weight of six is a pure policy: (largest first, smallest first) for each feature.
_PURE = (
    ("lqf", "sqf"),
    ("lpf", "spf"),
    ("fcfs", "lcfs"),
    ("lrf", "srf"),
    ("lexp", "sexp"),
    ("laf", "saf"),
)


def policy_name(policy: Any) -> str | None:
    """Return the name of a pure policy given by name or by six weights, else None."""
    if isinstance(policy, str):
        return policy.lower()
    if not isinstance(policy, (tuple, list, np.ndarray)):
        return None
    weights = np.asarray(policy, dtype=float)
    used = np.flatnonzero(weights)
    if weights.shape != (6,) or used.size != 1:
        return None
    largest_first, smallest_first = _PURE[int(used[0])]
    return largest_first if weights[used[0]] > 0 else smallest_first


def static_rank(workload: Workload, policy: Any, times: Any) -> Ints | None:
    """Return each job's place in a primary order that never changes; None if it may change.

    ``times`` are the run times that the policy looks at, (n_jobs,) [s].
    """
    name = policy_name(policy)
    # double precision, in which scores are defined
    q = workload.requested_processors.astype(np.float64)
    p = np.asarray(times, np.float64)
    keys: dict[str | None, Any] = {
        "fcfs": lambda: workload.submit_time,
        "lcfs": lambda: -workload.submit_time,
        "spf": lambda: p,
        "sjf": lambda: p,
        "lpf": lambda: -p,
        "sqf": lambda: q,
        "lqf": lambda: -q,
        "saf": lambda: p * q,
        "laf": lambda: -(p * q),
        "srf": lambda: p / q,
        "lrf": lambda: -(p / q),
    }
    if name not in keys:
        return None
    rank = np.empty(len(workload), np.int64)
    rank[np.argsort(keys[name](), kind="stable")] = np.arange(len(workload))
    return rank


def first_waiting(
    submit_time: Ints,
    threshold: float | None,
    rank: Ints,
    time: Ints,
    submit: Ints,
    start: Ints,
    number: Ints | None = None,
) -> Ints:
    """Return the place of the first waiting job in primary order at each time of a schedule.

    Places are those of ``place_in_order``; 2 * n_jobs where no job waits. A job waits from its
    submission to its start, the latter excluded.

    Parameters
    ----------
    submit_time : (n_jobs,) int64, seconds.
    threshold : wait in seconds beyond which a job comes first, or None.
    rank : (n_jobs,) int64, of ``static_rank``.
    time : (n_times,) int64, increasing, seconds.
    submit, start : (n_jobs,) int64, the places in ``time`` of each job's submission and start.
    number : (n_jobs,) int64, their places in the order of submission; by default as they stand.

    Returns
    -------
    place : (n_times,) int64.
    """
    n = len(rank)
    numbers = np.arange(n) if number is None else number
    if threshold is None:
        return _least_over_spans(submit, start, rank + n, time.size, 2 * n)
    # A job joins those that come first, in submission order, once its wait exceeds the threshold.
    after = submit_time + float(min(threshold, _NEVER))
    starved = np.minimum(np.searchsorted(time, after, side="right"), start)
    starved = np.maximum(starved, submit)  # one that waits again may have waited so long before
    return np.minimum(
        _least_over_spans(submit, starved, rank + n, time.size, 2 * n),
        _least_over_spans(starved, start, numbers, time.size, 2 * n),
    )


def place_in_order(
    wait: Ints, threshold: float | None, rank: Ints, number: Ints | None = None
) -> Ints:
    """Return each job's place at its start: starved jobs by number, others n_jobs + rank."""
    n = len(rank)
    if threshold is None:
        return rank + n
    return np.where(wait > threshold, np.arange(n) if number is None else number, rank + n)


def _least_over_spans(first: Ints, stop: Ints, value: Ints, size: int, nothing: int) -> Ints:
    """Return at each of ``size`` places the least value of the spans [first, stop) over it.

    A span is covered by two blocks of 2**k places; blocks hand their least value down to their
    two halves, from the largest to single places: O((n_jobs + size) log size), no loop over jobs.
    """
    length = stop - first
    level = np.full(length.shape, -1)
    level[length > 0] = np.frexp(length[length > 0].astype(np.float64))[1] - 1
    least = np.full(size, nothing, np.int64)
    for k in range(int(level.max(initial=0)), -1, -1):
        spans = np.flatnonzero(level == k)
        np.minimum.at(least, first[spans], value[spans])
        np.minimum.at(least, stop[spans] - 2**k, value[spans])
        half = 2**k // 2
        if half > 0:
            least[half:] = np.minimum(least[half:], least[:-half])
    return least


# --- What was predicted and promised, for :mod:`hpcgym.validation.validate` -----------------------


def check_predictions(result: Result, actual: Times) -> list[str]:
    """Compare the predicted run times with the scheduler's estimates."""
    requested, found = result.workload.requested_time, []
    of_policy = result.policy_run_time
    rules = result.scheduler
    for estimate, predicted, what in (
        (rules.estimate, result.predicted_run_time, "predicted to run"),
        (rules.policy_estimate, of_policy, "ordered as if it ran"),
    ):
        expected = known_beforehand(estimate, requested, actual)
        if predicted is None:
            if expected is None:
                found.append("there are no predictions that the policy looked at")
        elif expected is None:
            wrong = (predicted < 1) | (predicted > requested)
            text = f"job {{}} is {what} {{}} s although it requests {{}} s"
            found += cases(wrong, text, predicted, requested)
        else:
            text = f"job {{}} is {what} {{}} s instead of {{}} s"
            found += cases(predicted != expected, text, predicted, expected)
    return found


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
    found = cases(
        promised & (reserved < submit),
        "job {} is promised {} s, before its submission at {} s",
        reserved,
        submit,
    )
    if result.scheduler.reserve.kind == "none":
        found += cases(promised, "job {} is promised a start without backfilling")
        found += cases(result.backfilled, "job {} is marked as backfilled without backfilling")
    if result.scheduler.reserve.conservative:
        text = "job {} has no reservation under conservative backfilling"
        found += cases(~promised & decided(result.workload), text)
    return found


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
    if scheduler.reserve.slurm is not None:  # who ends together changes
        return False
    one = scheduler.reserve.one or scheduler.reserve.anew
    return one and policy_name(scheduler.policy) == "fcfs"


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


def check_order(
    result: Result,
    line: Timeline,
    rank: Times,
    first: Times,
    needs: Times | None,
    number: Times | None = None,
    down: Down | None = None,
) -> list[str]:
    """Find times at which the first waiting job would fit the free processors, or nodes.

    ``number`` as :func:`hpcgym.validation.passes.first_waiting` takes it, ``down`` as
    :func:`hpcgym.validation.passes.fits_nodes`.
    """
    n = len(result.workload)
    by_number = np.arange(n) if number is None else np.argsort(number)
    job_at = np.concatenate((by_number, np.argsort(rank), [0]))  # place -> job
    job = job_at[first]
    passed = line.submission | line.termination
    if result.scheduler.passes == "per-event" and result.scheduler.threshold is not None:
        passed = line.termination
    passed &= ~_cut_short(result, line)
    free = result.cluster.processors - line.used
    if down is not None:
        free -= _cores_down(result, line, down)
    needed = _needed(result, job, line.time)
    if needed is None:
        return []
    fits = (first < 2 * n) & (needed <= free) & passed
    what = "processors are free"
    if needs is not None and result.allocation is not None:
        fits = fits_nodes(result, needs, result.allocation, line, job, fits, down)
        what = "cores are free on nodes"
    text = f"at {{1}} s {{2}} {what} and job {{3}}, first in the queue, would fit"
    return cases(fits, text, line.time, free, job)


def _cut_short(result: Result, line: Timeline) -> Mask:
    """Return at which times a pass of Slurm's may have left out jobs, as it looked at enough."""
    slurm = result.scheduler.reserve.slurm
    if slurm is None:
        return np.zeros(len(line.time), np.bool_)
    started = np.bincount(line.start, minlength=len(line.time))
    cut: Mask = (started > slurm.default_queue_depth) & (line.time % slurm.sched_interval != 0)
    return cut


def _cores_down(result: Result, line: Timeline, down: Down) -> Times:
    """Return how many cores are on nodes that are down, (n_times,)."""
    node, begin, end = down
    cores = result.cluster.capacity[node, 0]
    changes = np.zeros(line.time.size + 1, np.int64)
    np.add.at(changes, begin, cores)
    np.subtract.at(changes, end, cores)
    total: Times = np.cumsum(changes)[:-1]
    return total


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
    z = np.clip(np.log(x / hold.from_s) / np.log(hold.factor), 0, 1)
    most = result.cluster.processors
    back = hold.share * most * z / (1 + (time - workload.submit_time[job]) / hold.erode_s)
    # where rounding decides, rather too many than a job called late that is not
    needed: Times = np.minimum(most, q + np.rint(back * (1 + 1e-12) + 1e-12).astype(np.int64))
    return needed


def check_backfilled(
    result: Result,
    line: Timeline,
    rank: Times,
    first: Times,
    submit: Times | None = None,
    number: Times | None = None,
    told: Mask | None = None,
) -> list[str]:
    """Compare the backfilled marks with who was left waiting at each job's start.

    ``submit`` (n_jobs,) [s] is what waiting counts from, ``number`` is as
    :func:`hpcgym.validation.passes.first_waiting` takes it, ``told`` (n_jobs,) whose marks are
    known.
    """
    wait = result.start - (result.workload.submit_time if submit is None else submit)
    overtook = first[line.start] < place_in_order(wait, result.scheduler.threshold, rank, number)
    overtook &= decided(result.workload)
    known = np.ones(len(overtook), np.bool_) if told is None else told
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
