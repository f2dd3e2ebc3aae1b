"""What restricts who may start when: quotas, windows, and jobs that follow or stop others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, HpcgymWarning, RuleWarning, WorkloadError, warn_caller
from hpcgym.schedule.runs import of_jobs
from hpcgym.scheduler import allocations
from hpcgym.scheduler.allocations import KILL, UNCORRECTED
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.estimates.by_name import learns, predicted_run_times
from hpcgym.scheduler.estimates.learning import looks_at_time
from hpcgym.scheduler.policies.expressions import Expression
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.index import (
    IndexPolicy,
    Ranking,
    rank,
    rank_without_usage,
    unknown_yet,
)
from hpcgym.scheduler.rule_values import plain
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.quotas import (
    called_together,
    closings,
    make_places,
    make_quotas,
    make_windows,
    preemption_of,
    use_up,
    warn_of_absent,
    warn_of_none,
    warn_of_unmet,
)
from hpcgym.workload.model import MAX_TIME, MISSING, Following, Workload, followed, think_times

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.schedule.result import Result


# --- The orders in which jobs that wait are served and back-filled --------------------------------

_Known = TypeVar("_Known", Ranking, Ranking | None)


class Order(NamedTuple):
    """An order of jobs that wait, as ``Model`` takes it.

    Attributes
    ----------
    code : of :mod:`hpcgym.scheduler.allocations`.
    keys : (n_jobs,) int64 that ascend, where it is by such.
    scores : (n_jobs, 2) float64 scores and patience, in ticks, where it is by such.
    """

    code: int
    keys: NDArray[np.int64] | None = None
    scores: NDArray[np.float64] | None = None


def orders(
    workload: Workload, scheduler: Scheduler, shares: bool = False, ticks: int = 1
) -> tuple[Order, Order]:
    """Return the primary and the secondary order.

    With ``shares``, scores may depend on usage; they are returned without what that adds.
    """
    first, second = rankings(workload, scheduler, shares)
    if scheduler.moves_submissions:  # when jobs are submitted becomes known as they are
        first, second = _by_key(first, workload), _by_key(second, workload)
    return _order(first, ticks), _order(second, ticks)


def _order(ranking: Ranking | None, ticks: int) -> Order:
    """Return an order; None: by predicted run time."""
    if ranking is None:
        return Order(allocations.PREDICTION)
    if ranking.score is None:
        return Order(allocations.SUBMISSION)
    if ranking.patience is None:
        return Order(allocations.KEYED, keys=_ascending_keys(ranking.score))
    scores = np.column_stack([ranking.score, ranking.patience * ticks])
    return Order(allocations.CUBED if ranking.cubed else allocations.SCORED, scores=scores)


def _ascending_keys(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return integers that ascend as the scores descend: the bits of -score, made monotone."""
    # adding 0.0 makes -0.0 and 0.0 one key
    bits = (0.0 - scores + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def rankings(
    workload: Workload, scheduler: Scheduler, shares: bool = False
) -> tuple[Ranking, Ranking | None]:
    """Return the primary and the secondary order; None: by predicted run time."""
    run_time = np.minimum(workload.run_time, workload.requested_time)
    # where they are learned, the requested times hold their places
    columns = JobColumns(
        workload,
        predicted_run_times(scheduler.policy_estimate, run_time, workload, "policy_estimate"),
    )
    learned = learns(scheduler.policy_estimate)
    anew = scheduler.anew
    first = _ranking(scheduler.order, columns, learned, shares, anew[0])
    second: Ranking | None = Ranking(None, None)  # by submission, unless it is said
    if scheduler.reserve.sweeps:
        order = scheduler.sweep_order
        second = None if order is None else _ranking(order, columns, learned, shares, anew[1])
    return first, second


def _by_key(ranking: _Known, workload: Workload) -> _Known:
    """Return an order whose keys may be written anew, where it is that of submission."""
    if ranking is None or not ranking.by_submission:
        return ranking
    return Ranking(-workload.submit_time.astype(np.float64), None)


def _ranking(
    order: IndexPolicy, columns: JobColumns, learned: bool, shares: bool, anew: Expression | None
) -> Ranking:
    """Return the scores of jobs; as those of an order that may change where times are learned."""
    if anew is not None:
        return unknown_yet(columns)
    if shares and order.looks_at_usage:
        return rank_without_usage(order, columns)
    ranking = rank(order, columns)
    if learned and ranking.patience is None and looks_at_time(order):
        return replace(ranking, patience=np.full_like(columns.submit, np.inf))
    return ranking


# --- Submissions that the schedule makes ----------------------------------------------------------

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
    parsed = zip(rules, scheduler.orders, ranked, scheduler.anew, strict=True)
    for rule, order, ranking, anew in parsed:
        arrival = ranking is not None and ranking.by_submission
        found.append(arrival)
        if arrival or ranking is None:
            continue
        assert order is not None  # that of submission was passed over
        names = set(order.weights)
        if order.expression is not None:
            names |= {step.name for step in order.expression.steps if step.name}
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
        return scheduler.said("quota")
    return scheduler.said("dependencies")


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


# --- What restricts who may start when ------------------------------------------------------------


def check_restricted(workload: Workload, scheduler: Scheduler, correction: int, place: str) -> None:
    """Check the rules of a simulation under quotas, around windows or of jobs that wait for others.

    Parameters
    ----------
    correction : its code; UNCORRECTED, where no prediction is too short.
    place : of :data:`hpcgym.scheduler.capabilities.PLACES`.

    Raises
    ------
    HpcgymError : rules that do not go with quotas or windows, or predictions that may be too short
        for windows.

    Warns
    -----
    HpcgymWarning : EASY on nodes, whose reservation is another then.
    """
    _check_planned(workload, scheduler, place)
    if scheduler.maintenance and correction not in (UNCORRECTED, KILL):
        raise HpcgymError(
            f"estimate={scheduler.describe()['estimate']!r} may be too short, and a job would run"
            " into a window: take 'requested', or correction='kill', which ends it in time"
        )
    mode = "" if scheduler.preemption is None else scheduler.preemption.mode
    if scheduler.dependencies != "none" and mode == "cancel":
        raise HpcgymError(
            f"{scheduler.said('preemption')} and {scheduler.said('dependencies')} do"
            " not go together: jobs would follow jobs that are cancelled; take requeue or suspend"
        )
    if scheduler.moves_submissions and mode == "cancel":
        raise HpcgymError(
            f"{scheduler.said('preemption')} and {scheduler.said('quota')} do not go together:"
            " a job that is cancelled would let others come in the very pass; take requeue or"
            " suspend"
        )
    if scheduler.moves_submissions and scheduler.hold is not None and callable(scheduler.policy):
        raise HpcgymError(
            f"hold, policy={plain(scheduler.policy)} and {what_moves(scheduler)} do not go"
            " together: the function is asked before those jobs come that others have let come"
        )
    if scheduler.maintenance and mode == "suspend":
        raise HpcgymError(
            f"{scheduler.said('preemption')} and maintenance windows do not go together:"
            " a suspended job would go on into a window; take requeue or cancel"
        )


def _check_planned(workload: Workload, scheduler: Scheduler, place: str) -> None:
    """Raise or warn as :func:`check_restricted` does, whatever restricts.

    Where something is planned around, EASY's reservation on nodes is of nodes by name.
    """
    extract = () if workload.initial is None else ("extract",)
    check_scheduler(scheduler, place, *extract)
    rule = "preemption" if scheduler.preemption is not None else "windows"
    planned = scheduler.preemption is not None or scheduler.maintenance
    if place == "nodes" and planned and scheduler.reserve.one:
        warn_caller(
            f"with {rule} EASY's reservation is of nodes by name, and not a promise of room:"
            " compare with a window that nobody meets",
            HpcgymWarning,
        )


def warn_of_unused(
    slices: Sequence[Workload], schedulers: Sequence[Scheduler], cluster: Cluster
) -> None:
    """Warn of what restricts no job of any slice, once for the same rules.

    Warns
    -----
    RuleWarning : quotas that are of no job, windows that none meets, preemption of nobody, jobs
        that follow jobs that are not there.
    """
    for quotas in {one.quota: None for one in schedulers if one.quota}:
        warn_of_none(slices, quotas, [make_quotas(one, quotas) for one in slices])
    for scheduler in {one.maintenance: one for one in schedulers if one.maintenance}.values():
        closed = [closings(one, scheduler, cluster) for one in slices]
        warn_of_unmet(slices, [make_windows(some, bool(cluster.groups)) for some in closed])
    for preempts in {str(one.preemption): one.preemption for one in schedulers}.values():
        if preempts is not None:
            warn_of_absent(slices, preempts)
    follows = {one.dependencies: None for one in schedulers if one.dependencies != "none"}
    for rule in list(follows)[:1]:
        following_in(slices, rule)


def restrictions_of(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    on_nodes: bool,
    several: bool,
    outside: bool,
    ticks: int,
) -> dict[str, Any]:
    """Return what restricts who may start when, as arguments of a model.

    Parameters
    ----------
    several : whether simulations have parts of the jobs, which do not know of the others.
    outside : whether the order of the queue is said from there.
    ticks : of the clock in a second.

    Raises
    ------
    HpcgymError : windows that the machine cannot have, or an order that looks at when jobs are
        submitted.
    WorkloadError : a job that exceeds a quota by itself, or follows itself, and would wait for
        ever.

    Warns
    -----
    RuleWarning : quotas that are of no job, windows before the first job or after the last,
        jobs that follow jobs that are not there, preemption of nobody.
    """
    quotas = make_quotas(workload, scheduler.quota)
    if workload.initial is not None and not several:
        use_up(quotas, workload.initial.running)
    warn_of_none([workload], scheduler.quota, [quotas])
    windows = make_windows(closings(workload, scheduler, cluster), on_nodes)
    warn_of_unmet([workload], [windows])
    told: dict[str, Any] = {
        "restrictions": {
            **quotas._asdict(),
            "windows": np.column_stack([windows.begin, windows.end, windows.taken]),
            "window_nodes": windows.nodes,
        }
    }
    if scheduler.moves_submissions:
        places = make_places(workload, scheduler.quota)
        told["arrivals"] = {
            **arrivals_of(workload, scheduler, several, outside, ticks),
            "processors": places.processors,
            "place_counts": places.counts,
            "places": places.left,
        }
    if scheduler.preemption is not None:
        told["preemption"] = preemption_of(workload, scheduler.preemption)
    return told
