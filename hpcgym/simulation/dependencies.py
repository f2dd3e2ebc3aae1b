"""Submissions that the schedule makes: of jobs that come when others have ended, as they came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, RuleWarning, WorkloadError, warn_caller
from hpcgym.schedule.lost_runs import of_jobs
from hpcgym.scheduler.policies.index import parse_policy
from hpcgym.simulation.orders import rankings
from hpcgym.simulation.quotas import called_together
from hpcgym.workload.dependencies import Following, followed, think_times
from hpcgym.workload.model import MAX_TIME, MISSING

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload

_SHOWN = 6  # jobs of a ring
_BY_SUBMISSION = {"submit", "clock", "f1", "f2", "f3", "f4"}


def arrivals_of(
    workload: Workload, scheduler: Scheduler, several: bool, outside: bool, ticks: int
) -> dict[str, NDArray[np.int64]]:
    """Return which jobs follow which, and when others are due, as arguments of a model.

    Some jobs follow others, and are due once these have ended. Some would be one too many under a
    quota of submitted jobs, and wait outside the queue until others of theirs have ended.

    Parameters
    ----------
    several : whether simulations have parts of the jobs, which do not know of the others.
    outside : whether the order of the queue is said from there.
    ticks : of the clock in a second.

    Raises
    ------
    HpcgymError : an order that looks at when the log says that jobs are submitted.
    WorkloadError : jobs that follow each other, or think times beyond the clock.

    Warns
    -----
    RuleWarning : jobs that follow jobs that are not there, or no jobs that follow others.
    """
    n, rule = len(workload), scheduler.dependencies
    by_arrival = _orders_of_arrival(workload, scheduler)
    by_arrival[0] &= not outside
    none = np.empty(0, np.int64)
    following = Following(none, none, np.zeros(n, np.bool_))
    if rule != "none":
        following = following_in([workload], rule)[0]
    by_other = np.argsort(following.other, kind="stable")
    told = {
        "first": np.searchsorted(following.other[by_other], np.arange(n + 1)),
        "followers": following.job[by_other],
        "earliest": workload.submit_time * (ticks * (rule == "after")),
        "by_arrival": by_arrival,
    }
    if not several:
        awaits = np.bincount(following.job, minlength=n)
        return told | {"think": think_times(workload, following, rule) * ticks, "awaits": awaits}
    waited = workload.wait_time  # -1: the log does not tell it
    log_end = np.where(waited < 0, -1, workload.submit_time + waited + workload.run_time)
    think = np.maximum(workload.think_time, -1 if rule == "closed-loop" else 0)
    return told | {"think": think, "log_end": log_end}


def longest_outside(workload: Workload, scheduler: Scheduler) -> float:
    """Return how much longer a schedule may become [s] as jobs are submitted late."""
    if not scheduler.moves_submissions:
        return 0.0
    more = float(len(workload))  # they come at whole seconds
    rule = scheduler.dependencies
    if rule != "none":
        more += float(think_times(workload, followed(workload), rule).sum(dtype=np.float64))
    return more


def _orders_of_arrival(workload: Workload, scheduler: Scheduler) -> NDArray[np.int64]:
    """Return 1 where the primary, or the secondary, order is that of submission.

    Raises
    ------
    HpcgymError : an order that looks at when jobs are submitted otherwise.
    """
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


def what_moves(scheduler: Scheduler) -> str:
    """Return the rule that changes when jobs are submitted."""
    if scheduler.dependencies == "none":
        return f"quota={scheduler.quota!r}"
    return f"dependencies={scheduler.dependencies!r}"


def following_in(slices: Sequence[Workload], dependencies: str) -> list[Following]:
    """Return which jobs of each slice follow which; warn of what is odd.

    Raises
    ------
    WorkloadError : jobs that follow each other, or think times beyond the clock.

    Warns
    -----
    RuleWarning : as :func:`arrivals_of`.
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
    for one, following in pairs:
        total = float(think_times(one, following, dependencies).sum(dtype=np.float64))
        if total > MAX_TIME:
            raise WorkloadError(f"{one.name}: think times are {total:.3g} s together, over 2^53 s")
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
    columns = ["start", "run_time", "predicted_run_time", "reserved_start", "backfilled"]
    columns += [
        name for name in ("policy_run_time", "frequency") if getattr(result, name) is not None
    ]
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
        coschedule=None if result.coschedule is None else result.coschedule.take(order),
        lost=of_jobs(result.lost, order),
        pieces=of_jobs(result.pieces, order),
        suspended=None if result.suspended is None else result.suspended[order],
        **rows,
    )
