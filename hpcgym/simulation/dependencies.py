"""Submissions that the schedule makes: as the engine takes them, and the jobs as they came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.passes.dependencies import COMING, SCALARS, Dependencies
from hpcgym.errors import HpcgymError, RuleWarning, WorkloadError, warn_caller
from hpcgym.schedule.lost_runs import of_jobs
from hpcgym.scheduler.policies.index import parse_policy
from hpcgym.simulation.prepare import rankings
from hpcgym.simulation.quotas import called_together
from hpcgym.workload.dependencies import Following, followed, think_times
from hpcgym.workload.model import MAX_TIME, MISSING

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload

_SHOWN = 6  # jobs of a ring
_BY_SUBMISSION = {"submit", "clock", "f1", "f2", "f3", "f4"}


def make_dependencies(workload: Workload, scheduler: Scheduler) -> Dependencies:
    """Return which jobs are to follow which, and when others are due; none if the log says so.

    Raises
    ------
    HpcgymError : an order that looks at when the log says that jobs are submitted.
    WorkloadError : jobs that follow each other, or think times beyond the clock.

    Warns
    -----
    RuleWarning : jobs that follow jobs that are not there, or no jobs that follow others.
    """
    n = len(workload)
    if not scheduler.moves_submissions:
        none = np.empty(0, np.int64)
        came = np.empty(0, COMING)
        scalars = np.zeros(1, SCALARS)
        return Dependencies(none, none, none, none, none, came, none, none, none, scalars)
    by_arrival = orders_of_arrival(workload, scheduler)
    following = _nobody(n) if scheduler.dependencies == "none" else _following([workload])[0]
    left = np.bincount(following.job, minlength=n)
    by_other = np.argsort(following.other, kind="stable")
    think = think_times(workload, following, scheduler.dependencies)
    _check_think_times([workload], [following], scheduler.dependencies)
    free = np.flatnonzero(left == 0)  # by time, which makes a heap
    made = Dependencies(
        first=np.searchsorted(following.other[by_other], np.arange(n + 1)),
        followers=following.job[by_other],
        left=left,
        think=think,
        earliest=workload.submit_time * (scheduler.dependencies == "after"),
        coming=np.zeros(n, COMING),
        outside=np.zeros(n, np.int64),
        came=np.full(n, -1),
        by_arrival=by_arrival,
        scalars=np.zeros(1, SCALARS),
    )
    made.coming["time"][: len(free)] = workload.submit_time[free]
    made.coming["job"][: len(free)] = free
    own: Any = made.scalars[0]
    own.coming = len(free)
    return made


class Links(NamedTuple):
    """Which jobs follow which in many simulations; as RestrictedRows have it."""

    first: NDArray[np.int64]
    followers: NDArray[np.int64]
    told: NDArray[np.int64]
    log_end: NDArray[np.int64]
    earliest: NDArray[np.int64]


def links_of(slices: Sequence[Workload], scheduler: Scheduler) -> Links:
    """Return which jobs of slices, one after the other, follow which of the same slice.

    Raises
    ------
    WorkloadError : jobs that follow each other, or think times beyond the clock.

    Warns
    -----
    RuleWarning : as :func:`make_dependencies`.
    """
    none = np.zeros(0, np.int64)
    if not scheduler.moves_submissions:
        return Links(np.zeros(1, np.int64), none, none, none, none)
    follows = scheduler.dependencies != "none"
    made = _following(slices) if follows else [_nobody(len(one)) for one in slices]
    _check_think_times(slices, made, scheduler.dependencies)
    begin = np.cumsum([0, *map(len, slices)])
    pairs = list(zip(begin[:-1], made, strict=True))
    job = np.concatenate([row + following.job for row, following in pairs])
    other = np.concatenate([row + following.other for row, following in pairs])
    by_other = np.argsort(other, kind="stable")
    submit, wait, run, think = (
        np.concatenate([one.columns[name] for one in slices]).astype(np.int64)
        for name in ("submit_time", "wait_time", "run_time", "think_time")
    )
    closed = scheduler.dependencies == "closed-loop"
    return Links(
        first=np.searchsorted(other[by_other], np.arange(begin[-1] + 1)),
        followers=job[by_other],
        told=np.maximum(think, -1 if closed else 0),
        log_end=np.where(wait < 0, -1, submit + wait + run),
        earliest=submit * (scheduler.dependencies == "after"),
    )


def _check_think_times(
    slices: Sequence[Workload], made: Sequence[Following], dependencies: str
) -> None:
    """Raise a WorkloadError if the think times of a slice are beyond the clock together."""
    for one, following in zip(slices, made, strict=True):
        total = float(think_times(one, following, dependencies).sum(dtype=np.float64))
        if total > MAX_TIME:
            raise WorkloadError(f"{one.name}: think times are {total:.3g} s together, over 2^53 s")


def orders_of_arrival(workload: Workload, scheduler: Scheduler) -> NDArray[np.int64]:
    """Return 1 where the primary, or the secondary, order is that of submission.

    None is where the log says when jobs are submitted.

    Raises
    ------
    HpcgymError : an order that looks at when jobs are submitted otherwise.
    """
    if not scheduler.moves_submissions:
        return np.zeros(2, np.int64)
    found = []
    rules = ("policy", "backfill_order")
    ranked = rankings(workload, scheduler, shares=True)
    for rule, ranking, anew in zip(rules, ranked, scheduler.anew, strict=True):
        arrival = ranking is not None and ranking.by_submission
        found.append(arrival)
        if arrival or ranking is None:
            continue
        policy = parse_policy(getattr(scheduler, rule))
        names = set(policy.weights)
        if policy.expression is not None:
            names |= {step.name for step in policy.expression.steps if step.name}
        # by a multiple of the waiting time, and not by submission: it is the reverse of that
        reverse = names == {"wait"} and anew is None
        if reverse or not names.isdisjoint(_BY_SUBMISSION):
            raise HpcgymError(
                f"{rule}={scheduler.describe()[rule]!r} looks at when the log says that jobs are"
                f" submitted, and {what_moves(scheduler)} changes that"
            )
    return np.array(found, np.int64)


def check_weighed(features: Sequence[str], scheduler: Scheduler) -> None:
    """Raise an HpcgymError for features by which weights would look at when jobs are submitted.

    Where the schedule says when jobs come.
    """
    looking = [name for name in features if name in _BY_SUBMISSION]
    if looking and scheduler.moves_submissions:
        raise HpcgymError(
            f"feature {looking[0]!r} looks at when the log says that jobs are submitted, and"
            f" {what_moves(scheduler)} changes that"
        )


def check_moved(scheduler: Scheduler, place: str, by_usage: bool) -> None:
    """Raise an HpcgymError for what a batch, or environments, do not know of moved submissions.

    ``by_usage``: whether anything looks at what users have used.
    """
    if not scheduler.moves_submissions or not (by_usage or scheduler.preemption):
        return
    what = "an order by what users have used" if by_usage else "preemption"
    raise HpcgymError(
        f"{what} and {what_moves(scheduler)} do not go together in {place}: not supported yet;"
        " simulate() knows both"
    )


def what_moves(scheduler: Scheduler) -> str:
    """Return the rule that changes when jobs are submitted."""
    if scheduler.dependencies == "none":
        return f"quota={scheduler.quota!r}"
    return f"dependencies={scheduler.dependencies!r}"


def _nobody(n: int) -> Following:
    """Return that none of so many jobs follows another."""
    none = np.empty(0, np.int64)
    return Following(none, none, np.zeros(n, np.bool_))


def _following(slices: Sequence[Workload]) -> list[Following]:
    """Return which jobs of each slice follow which; warn of what is odd.

    Raises
    ------
    WorkloadError : jobs that follow each other.
    """
    made = [followed(one) for one in slices]
    pairs, name = list(zip(slices, made, strict=True)), called_together(slices)
    odd = [one.think_time[np.unique(following.job)] < MISSING for one, following in pairs]
    if number := sum(int(np.count_nonzero(one)) for one in odd):
        who = "1 job has" if number == 1 else f"{number:,} jobs have"
        warn_caller(
            f"{name}: {who} a think time below {MISSING}: it is taken for unknown", RuleWarning
        )
    if number := sum(int(np.count_nonzero(following.missing)) for following in made):
        who = "1 job follows" if number == 1 else f"{number:,} jobs follow"
        warn_caller(
            f"{name}: {who} jobs that are not there. A job is submitted when the log"
            " says if none of those that it follows is there",
            RuleWarning,
        )
    elif not any(len(following.job) for following in made):
        warn_caller(f"{name}: no job follows another: the log has no preceding_job", RuleWarning)
    for one, following in pairs:
        never = _never(following, len(one))
        if len(never):
            job = int(never[0])
            more = "" if len(never) == 1 else f". The same holds for {len(never):,} jobs"
            raise WorkloadError(
                f"{one.name}: {one.called(job)} follows a job that follows itself, and would"
                f" never come: {_ring(following, one, job, never)}{more}"
            )
    return made


def _never(following: Following, n: int) -> NDArray[np.int64]:
    """Return the jobs that would never come, rising: they follow themselves, or some that do."""
    if (following.other < following.job).all():  # as in nearly all logs
        return np.empty(0, np.int64)
    followers: dict[int, list[int]] = {}
    for job, other in zip(following.job.tolist(), following.other.tolist(), strict=True):
        followers.setdefault(other, []).append(job)
    left = np.bincount(following.job, minlength=n)
    come = [other for other in followers if left[other] == 0]
    waiting = dict(enumerate(left.tolist()))
    while come:
        for job in followers.get(come.pop(), ()):
            waiting[job] -= 1
            if waiting[job] == 0:
                come.append(job)
    return np.array([job for job, count in waiting.items() if count > 0], np.int64)


def _ring(following: Following, workload: Workload, job: int, never: NDArray[np.int64]) -> str:
    """Return which jobs follow one another in a ring, of a job that would never come."""
    pairs = zip(following.job.tolist(), following.other.tolist(), strict=True)
    stuck = set(never.tolist())
    other = {one: before for one, before in pairs if before in stuck}
    path = [job]
    while other[path[-1]] not in path:
        path.append(other[path[-1]])
    ring = [*path[path.index(other[path[-1]]) :], other[path[-1]]]
    names = [workload.called(one) for one in ring]
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN - 1], "...", names[-1]]
    return ", which follows ".join(names)


def as_came(result: Result, came: NDArray[np.int64]) -> Result:
    """Return a schedule with its jobs in the order in which they ``came``, (n_jobs,) [s].

    They are submitted then; ``given`` has them as they were.
    """
    if not result.scheduler.moves_submissions:
        return result
    order = np.argsort(came, kind="stable")
    columns = ("start", "run_time", "predicted_run_time", "reserved_start", "backfilled")
    rows = {name: getattr(result, name)[order] for name in columns}
    for one in rows.values():
        one.flags.writeable = False
    held, rules = result.allocation, result.scheduler
    given = {rule: getattr(rules, rule) for rule in ("estimate", "policy_estimate")}
    moved = {rule: one[order] for rule, one in given.items() if isinstance(one, np.ndarray)}
    return replace(
        result,
        scheduler=rules.but(**moved) if moved else rules,
        given=result.workload,
        workload=result.workload.take(order).with_columns(submit_time=came[order]),
        allocation=None if held is None else held.rows(order),
        lost=of_jobs(result.lost, order),
        pieces=of_jobs(result.pieces, order),
        suspended=None if result.suspended is None else result.suspended[order],
        **rows,
    )
