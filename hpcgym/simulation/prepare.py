"""From a workload and a scheduler to what a simulation is told before its first event."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.cluster.files import find_cluster
from hpcgym.cluster.pool import Cluster
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.schedule.records import JOBS
from hpcgym.scheduler import codes
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.estimates.by_name import CORRECTION_CODES, learns, predicted_run_times
from hpcgym.scheduler.estimates.learning import (
    asks_for_predictions,
    averaged_jobs,
    learning_rules,
    looks_at_time,
)
from hpcgym.scheduler.hold import Hold
from hpcgym.scheduler.policies.expressions import Expression
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.index import (
    PolicyLike,
    Ranking,
    looks_at_usage,
    rank,
    rank_without_usage,
    unknown_yet,
)
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import MAX_TIME, Workload

_NOBODY = np.zeros(0, np.int64)
COSCHEDULED = ("compact", "spread", "half-socket", "part")  # allocations


def machine_of(workload: Workload, cluster: Any, processors: int | None) -> Cluster:
    """Return the machine that is given as a cluster, by its size or, without both, by the workload.

    Raises
    ------
    HpcgymError : no machine of that name, or a file that describes none.
    WorkloadError : both are given, or a cluster that is none.
    """
    if isinstance(cluster, str | os.PathLike):
        cluster = find_cluster(cluster)
    if cluster is not None and not isinstance(cluster, Cluster):
        raise WorkloadError(f"cluster must be a Cluster, not {cluster!r}; a number is processors")
    if cluster is None:
        return Cluster(workload.processors if processors is None else processors)
    if processors is not None:
        raise WorkloadError("give either cluster or processors, not both")
    return cluster


def check_allocation(allocation: str, cluster: Cluster) -> None:
    """Raise an HpcgymError for an order of nodes, other than the usual one, on a pool."""
    if allocation.partition(":")[0] in COSCHEDULED:
        raise HpcgymError(
            f"allocation {allocation!r} is for co-scheduling: give simulate() speedups of jobs that"
            " share nodes"
        )
    if allocation != "first-fit" and not cluster.groups:
        raise HpcgymError(
            f"allocation {allocation!r} is for machines with nodes, of which a pool of processors"
            " has none; cluster says which"
        )


@dataclass
class Told:
    """What a simulation is told of jobs and rules, as :class:`hpcgym._engine.Model` takes it.

    Attributes
    ----------
    jobs : (n_jobs,) JOBS.
    processors : of the machine.
    capacity : of what jobs take: processors, or nodes where each has its own, or parts of nodes.
    rules : by name; codes are those of :mod:`hpcgym.scheduler.codes`.
    keys : (2, n_jobs) int64 by which the two orders sort jobs that wait, None where neither does.
    scores : (2, n_jobs, 2) float64 scores and patience [s], None where neither order has any.
    predicted : (n_jobs,) int64 [s] run times as predicted beforehand; None: they are averages.
    held : (n_jobs,) float64 what is held back behind each job, None where nothing is.
    users, n_users : (n_jobs,) int64 numbers of users from 0, and how many; (0,) where none matter.
    """

    jobs: NDArray[np.void]
    processors: int
    capacity: int
    rules: dict[str, int]
    keys: NDArray[np.int64] | None = None
    scores: NDArray[np.float64] | None = None
    predicted: NDArray[np.int64] | None = None
    held: NDArray[np.float64] | None = None
    users: NDArray[np.int64] = field(default_factory=lambda: _NOBODY)
    n_users: int = 0

    def arguments(self, scored: bool = True) -> dict[str, Any]:
        """Return what ``Model`` takes of it, by name; ``scored``: the first order has scores."""
        orders = self.rules.get("primary", 0), self.rules.get("secondary", 0)
        told: dict[str, Any] = {
            "jobs": self.jobs.view(np.int64).reshape(-1, len(JOBS.names or ())),
            "capacity": self.capacity,
            "rules": self.rules,
            "predicted": self.predicted,
            "held": self.held,
        }
        if codes.KEYED in orders and self.keys is not None:
            told |= {"keys": self.keys[0], "second_keys": self.keys[1]}
        if max(orders[0] if scored else 0, orders[1]) >= codes.SCORED and self.scores is not None:
            told |= {"scores": self.scores[0], "second_scores": self.scores[1]}
        if len(self.users) == len(self.jobs):
            told |= {"users": self.users, "n_users": self.n_users}
        return told


def prepare(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    asks: bool | None = None,
    logs_ends: bool = False,
    shares: bool = False,
) -> Told:
    """Return what a simulation that is about to start is told.

    ``asks`` says whether it is to stop for predictions; by default only if it needs to.
    ``logs_ends`` says that ends are noted in any case, so that nodes can be given back; ``shares``,
    that somebody keeps books of what users have used, if an order looks at that.

    Raises
    ------
    HpcgymError : an order of nodes where there are none, or one of the queue that looks at usage,
        without ``shares``.
    WorkloadError : a job that cannot be simulated.
    """
    check_allocation(scheduler.allocation, cluster)
    if scheduler.coschedules:
        raise HpcgymError(
            "policies that look at the pass, backfill='fill', partners, pairs_above and"
            " pair_estimate are for co-scheduling: give simulate() speedups of jobs that share"
            " nodes"
        )
    check_jobs(workload, cluster.processors)
    jobs = job_records(workload)
    predicted = predicted_run_times(scheduler.estimate, jobs["run"], workload)
    asks = asks_for_predictions(scheduler) if asks is None else asks
    last = 0 if asks else averaged_jobs(scheduler)
    primary, secondary, keys, scores = orders(workload, scheduler, shares)
    rules = _rules(scheduler, primary, secondary, predicted, jobs["run"])
    asks_policy = callable(scheduler.policy)
    starts = scheduler.dispatcher is not None and not asks_policy
    rules |= {"asks": int(asks_policy), "starts": int(starts)}
    rules |= {"asks_by_clock": int(asks_policy and scheduler.slurm is not None)}
    rules |= {"estimate": codes.AVERAGE if last else codes.GIVEN, "last": last}
    rules |= power_rules(cluster, scheduler)
    counts = shares and any(scheduler.usage_orders)
    rules |= learning_rules(scheduler, asks, logs_ends, counts)
    told = Told(jobs, cluster.processors, cluster.processors, rules, keys, scores)
    if not last:  # else averages
        told.predicted = np.zeros(len(jobs), np.int64) if predicted is None else predicted
    hold = Hold.parse(scheduler.hold)
    if hold is not None:
        rules |= {"holds": 1, "erode": 0 if hold.erode_s == math.inf else int(hold.erode_s)}
        times = predicted_run_times(
            scheduler.policy_estimate, jobs["run"], workload, "policy_estimate"
        )
        # where they are learned, the requested times hold their places
        times = jobs["requested"] if times is None else times
        told.held = hold.held_back(jobs["requested"], times, cluster.processors)
    if asks or last or rules.get("tested_of_user"):
        told.users, told.n_users = numbered(workload.user_id)
    return told


def power_rules(cluster: Cluster, scheduler: Scheduler, by_action: bool = False) -> dict[str, int]:
    """Return the rules of switching off as ``Model`` takes them.

    Raises
    ------
    HpcgymError : a scheduler for whose rules processors cannot be switched off.
    """
    if cluster.shutdown_after_s is None and not by_action:
        return {}
    check_scheduler(scheduler, "shutdown")
    if by_action and scheduler.plans:
        raise HpcgymError(
            "shutdown_action does not go with quota, maintenance, dependencies or preemption: the"
            " agent is asked there only where a job may start"
        )
    after = cluster.shutdown_after_s
    timeout = FOREVER if after is None else after
    return {
        "managed": 1,
        "timeout": timeout,
        "off_time": cluster.shutdown_time_s,
        "on_time": cluster.boot_time_s,
    }


def job_records(workload: Workload) -> NDArray[np.void]:
    """Return the jobs as ``Model`` takes them, (n_jobs,) JOBS."""
    jobs = np.empty(len(workload), JOBS)
    jobs["submit"] = workload.submit_time
    jobs["run"] = np.minimum(workload.run_time, workload.requested_time)
    jobs["requested"] = workload.requested_time
    jobs["processors"] = workload.requested_processors
    jobs["since_first"] = workload.since_first_submit
    return jobs


def _rules(
    scheduler: Scheduler,
    primary: int,
    secondary: int,
    predicted: NDArray[np.int64] | None,
    run_time: NDArray[np.int64],
) -> dict[str, int]:
    """Return the rules of a queue as ``Model`` takes them.

    ``predicted`` are run times that are predicted beforehand, None if they become known later.
    """
    never_short = predicted is not None and bool((predicted >= run_time).all())
    threshold = scheduler.threshold
    return {
        "passes": codes.PER_EVENT if scheduler.passes == "per-event" else codes.PER_TIMESTAMP,
        "depth": codes.UNLIMITED if scheduler.depth is None else scheduler.depth,
        "primary": primary,
        "secondary": secondary,
        "correction": codes.UNCORRECTED if never_short else CORRECTION_CODES[scheduler.correction],
        # waiting times are whole seconds, so "longer than" stays the same rounded down
        "threshold": (codes.NO_THRESHOLD if threshold is None else int(min(threshold, MAX_TIME))),
        "strict": int(scheduler.backfill == "until-shadow" or scheduler.slurm is not None),
        **_planning_rules(scheduler),
    }


def _planning_rules(scheduler: Scheduler) -> dict[str, int]:
    """Return the rules of reservations that are made anew."""
    if not scheduler.plans:
        return {}
    slurm = scheduler.slurm
    if slurm is None:
        return {"tested": codes.ALL_JOBS, "window": FOREVER}
    return {
        "every": slurm.bf_interval,
        "tested": slurm.bf_max_job_test,
        "tested_of_user": slurm.bf_max_job_user,
        "window": 60 * slurm.bf_window,
        "resolution": slurm.bf_resolution,
        "linear": slurm.bf_window_linear,
        "at_events": slurm.default_queue_depth + 1,  # as Slurm counts
        "all_every": slurm.sched_interval,
    }


_Order = TypeVar("_Order", Ranking, Ranking | None)


def orders(
    workload: Workload, scheduler: Scheduler, shares: bool = False
) -> tuple[int, int, NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Return the codes of the primary and the secondary order, their keys and their scores.

    These are as :class:`Told` has them. With ``shares``, scores may depend on usage; they are
    returned without what that adds.
    """
    first, second = rankings(workload, scheduler, shares)
    if scheduler.moves_submissions:  # when jobs are submitted becomes known as they are
        first, second = _by_key(first, workload), _by_key(second, workload)
    primary = _order_code(first)
    secondary = codes.PREDICTION if second is None else _order_code(second)
    n = len(workload)
    # the memory of a half that nobody needs is never touched, and so never taken
    keys = np.empty((2, n), np.int64) if codes.KEYED in (primary, secondary) else None
    scores = np.empty((2, n, 2)) if max(primary, secondary) >= codes.SCORED else None
    for half, ranking, code in ((0, first, primary), (1, second, secondary)):
        if ranking is None:
            continue
        if code == codes.KEYED and keys is not None:
            assert ranking.score is not None
            keys[half] = _ascending_keys(ranking.score)
        elif code >= codes.SCORED and scores is not None:
            scores[half, :, 0], scores[half, :, 1] = ranking.score, ranking.patience
    return primary, secondary, keys, scores


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
    first = _ranking(scheduler.policy, columns, learned, shares, anew[0])
    second: Ranking | None = Ranking(None, None)  # by submission, unless it is said
    if scheduler.sweeps:
        order = scheduler.sweep_policy
        second = None if order is None else _ranking(order, columns, learned, shares, anew[1])
    return first, second


def _by_key(ranking: _Order, workload: Workload) -> _Order:
    """Return an order whose keys may be written anew, where it is that of submission."""
    if ranking is None or not ranking.by_submission:
        return ranking
    return Ranking(-workload.submit_time.astype(np.float64), None)


def _ranking(
    policy: PolicyLike, columns: JobColumns, learned: bool, shares: bool, anew: Expression | None
) -> Ranking:
    """Return the scores of jobs; as those of an order that may change where times are learned."""
    if anew is not None:
        return unknown_yet(columns)
    if shares and looks_at_usage(policy):
        return rank_without_usage(policy, columns)
    ranking = rank(policy, columns)
    if learned and ranking.patience is None and looks_at_time(policy):
        return replace(ranking, patience=np.full_like(columns.submit, np.inf))
    return ranking


def _order_code(ranking: Ranking) -> int:
    """Return how the engine keeps this order."""
    if ranking.by_submission:
        return codes.SUBMISSION
    if ranking.patience is None:
        return codes.KEYED
    return codes.CUBED if ranking.cubed else codes.SCORED


def numbered(user_id: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return each job's user as a number from 0, and how many numbers there are."""
    if user_id.size == 0:
        return _NOBODY, 0
    low, high = int(user_id.min()), int(user_id.max())
    if high - low <= 4 * user_id.size:
        return user_id - low, high - low + 1
    distinct, numbered = np.unique(user_id, return_inverse=True)
    return numbered.astype(np.int64), distinct.size


def check_jobs(workload: Workload, processors: int) -> None:
    """Raise a WorkloadError that names the first job that cannot be simulated on the machine."""
    if len(workload) == 0:
        return
    checks = (
        ("run_time", 1, MAX_TIME),
        ("requested_time", 1, MAX_TIME),
        ("requested_processors", 1, processors),
        ("submit_time", 0, MAX_TIME),
    )
    for column, least, most in checks:
        values = workload.columns[column]
        if values.min() >= least and values.max() <= most:
            continue
        bad = (values < least) | (values > most)
        first = int(np.flatnonzero(bad)[0])
        raise WorkloadError(
            f"{workload.name}: {int(bad.sum()):,} of {len(workload):,} jobs cannot be simulated: "
            f"{column} must be from {least} to {most}, and that of "
            f"{workload.called(first)} is {values[first]}; "
            f"load_workload(..., clean='default', processors={processors}), or with the machine as"
            " cluster=..., drops such jobs, counted"
        )
    # no schedule is longer than its jobs one after the other
    total = float(workload.requested_time.sum(dtype=np.float64)) + float(workload.submit_time[-1])
    if total >= FOREVER / 2:
        raise WorkloadError(
            f"{workload.name}: the jobs request {total:.3g} s one after the other, more than the "
            f"simulator's clock holds ({FOREVER / 2:.3g} s)"
        )
