"""The orders in which jobs that wait are served and back-filled, as the engine takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.scheduler import codes
from hpcgym.scheduler.estimates.by_name import learns, predicted_run_times
from hpcgym.scheduler.estimates.learning import looks_at_time
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
from hpcgym.workload.model import Workload

_Known = TypeVar("_Known", Ranking, Ranking | None)


class Order(NamedTuple):
    """An order of jobs that wait, as ``Model`` takes it.

    Attributes
    ----------
    code : of :mod:`hpcgym.scheduler.codes`.
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
        return Order(codes.PREDICTION)
    if ranking.score is None:
        return Order(codes.SUBMISSION)
    if ranking.patience is None:
        return Order(codes.KEYED, keys=_ascending_keys(ranking.score))
    scores = np.column_stack([ranking.score, ranking.patience * ticks])
    return Order(codes.CUBED if ranking.cubed else codes.SCORED, scores=scores)


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


def _by_key(ranking: _Known, workload: Workload) -> _Known:
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
