"""The orders in which jobs that wait are served and backfilled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.scheduler import allocations
from hpcgym.scheduler.estimates.by_name import learns, predicted_run_times
from hpcgym.scheduler.estimates.learning import looks_at_time
from hpcgym.scheduler.policies import index
from hpcgym.scheduler.policies.expressions import Expression
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload

_Known = TypeVar("_Known", index.Ranking, index.Ranking | None)


class Order(NamedTuple):
    """An order of jobs that wait, as ``Model`` takes it.

    Attributes
    ----------
    code : of :mod:`hpcgym.scheduler.allocations`.
    keys : (n_jobs,) int64, served in ascending order, if the order is by keys.
    scores : (n_jobs, 2) float64 scores and patience, in ticks, if the order is by scores.
    """

    code: int
    keys: NDArray[np.int64] | None = None
    scores: NDArray[np.float64] | None = None


def orders(
    workload: Workload, scheduler: Scheduler, shares: bool = False, ticks: int = 1
) -> tuple[Order, Order]:
    """Return the primary and the secondary order.

    With ``shares``, scores may depend on usage; they are returned without that part.
    """
    first, second = rankings(workload, scheduler, shares)
    if scheduler.moves_submissions:  # when jobs are submitted becomes known as they are
        first, second = _by_key(first, workload), _by_key(second, workload)
    return _order(first, ticks), _order(second, ticks)


def _order(ranking: index.Ranking | None, ticks: int) -> Order:
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


def columns_of(workload: Workload, scheduler: Scheduler) -> JobColumns:
    """Return the columns that orders look at; requested times stand for learned run times."""
    run_time = np.minimum(workload.run_time, workload.requested_time)
    estimate = scheduler.policy_estimate
    return JobColumns(
        workload, predicted_run_times(estimate, run_time, workload, "policy_estimate")
    )


def rankings(
    workload: Workload, scheduler: Scheduler, shares: bool = False
) -> tuple[index.Ranking, index.Ranking | None]:
    """Return the primary and the secondary order; None: by predicted run time."""
    columns, learned = columns_of(workload, scheduler), learns(scheduler.policy_estimate)
    anew = scheduler.anew
    first = _ranking(scheduler.order, columns, learned, shares, anew[0])
    second: index.Ranking | None = index.Ranking(None, None)  # by submission, unless it is said
    if scheduler.reserve.sweeps:
        order = scheduler.sweep_order
        second = None if order is None else _ranking(order, columns, learned, shares, anew[1])
    return first, second


def _by_key(ranking: _Known, workload: Workload) -> _Known:
    """Return an order of submission with keys that can be rewritten, other orders as they are."""
    if ranking is None or not ranking.by_submission:
        return ranking
    return index.Ranking(-workload.submit_time.astype(np.float64), None)


def _ranking(
    order: index.IndexPolicy,
    columns: JobColumns,
    learned: bool,
    shares: bool,
    anew: Expression | None,
) -> index.Ranking:
    """Return the scores of jobs, in a form that may change if run times are learned."""
    if anew is not None:
        return index.unknown_yet(columns)
    if shares and order.looks_at_usage:
        return index.rank_without_usage(order, columns)
    ranking = index.rank(order, columns)
    if learned and ranking.patience is None and looks_at_time(order):
        return replace(ranking, patience=np.full_like(columns.submit, np.inf))
    return ranking


def expressions_of(workload: Workload, scheduler: Scheduler) -> list[dict[str, NDArray[Any]]]:
    """Return the two orders by expressions computed at each pass; an empty list if none is."""
    if not any(scheduler.anew):
        return []
    columns = columns_of(workload, scheduler)
    return [
        {"codes": np.zeros(0, np.int64)} if expression is None else expression.program(columns)
        for expression in scheduler.anew
    ]
